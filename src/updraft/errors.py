"""Every error that updraft raises on purpose.

The tree::

    UpdraftError                 one sentence for the user; never a traceback
    ├── UsageError               the call or the configuration is wrong (exit code 2)
    │   └── ConfigError          updraft.toml is wrong; names the file and the line
    │       └── ConfigAbsent     it isn't there, or can't be read: as the machine stands now
    ├── ProblemFound             the call was right and something is amiss (exit code 1)
    ├── PoolError                HTCondor did not answer, or refused
    │   ├── PoolTimeout          no answer within the deadline
    │   ├── PoolDenied           HTCondor refused the credentials or the right
    │   └── DrainRefused         the startd says that it is busy: an answer, not a failure
    ├── BootstrapError           the user-data cannot be made
    ├── ImageError               a machine image cannot be built or found
    ├── LedgerError              the ledger on disk cannot be used
    ├── NotSent              a message of `notify` did not reach its receiver
    ├── StateLost            the state directory was taken away from a running controller
    ├── WatchOnly            a change was asked for where updraft only watches
    └── CloudError               a cloud did not do what was asked; drivers raise only these
        ├── NoCapacity           the cloud has no room for this offer now
        ├── QuotaExceeded        the cloud's quota for this project is used up
        ├── Throttled            too many calls; carries `retry_after`
        ├── AuthFailed           the cloud refused the credentials
        ├── BadRequest           the cloud will never accept this request as it is
        └── CloudUnavailable     no answer, or a failure on the cloud's side: for a launch, *unknown*

Whoever catches a foreign error at an edge raises one of these `from` it.
"""


class UpdraftError(Exception):
    """Shown to the user as one sentence that says what to do."""

    exit_code = 1


class UsageError(UpdraftError):
    """The command was called wrongly, or its configuration is wrong."""

    exit_code = 2


class ConfigError(UsageError):
    """A setting is unknown, malformed or impossible; the message names file and line."""


class ConfigAbsent(ConfigError):
    """The configuration isn't there, or can't be read: perhaps its disk comes later."""


class ProblemFound(UpdraftError):
    """The call was right, and what it looked for is amiss."""


class PoolError(UpdraftError):
    """HTCondor did not answer, or refused."""


class PoolTimeout(PoolError):
    """HTCondor gave no answer within the deadline."""


class PoolDenied(PoolError):
    """HTCondor refused the credentials, or the right to do this."""


class DrainRefused(PoolError):
    """The startd would not close: something runs on it. An answer, not a failure."""


class BootstrapError(UpdraftError):
    """User-data cannot be rendered, or is larger than the cloud takes."""


class ImageError(UpdraftError):
    """A machine image cannot be built or found."""


class LedgerError(UpdraftError):
    """The ledger on disk cannot be opened, or was written by a newer updraft."""


class NotSent(UpdraftError):
    """A message of `notify` did not reach its receiver; says why, and never who that is."""


class StateLost(UpdraftError):
    """The state directory was removed or replaced under a running controller."""


class WatchOnly(UpdraftError):
    """Something was to be changed where `[pool] act = false` says that updraft only watches."""


class CloudError(UpdraftError):
    """A cloud did not do what was asked of it.

    `code` is the short word that reaches the ledger, the log and the metrics.
    """

    code = "cloud-error"


class NoCapacity(CloudError):
    """The cloud has no room for this offer at the moment."""

    code = "no-capacity"


class QuotaExceeded(CloudError):
    """The cloud's own quota for this project is used up."""

    code = "quota-exceeded"


class Throttled(CloudError):
    """The cloud asks for fewer calls; `retry_after` is in seconds, None where it did not say."""

    code = "throttled"

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class AuthFailed(CloudError):
    """The cloud refused the credentials."""

    code = "auth-failed"


class BadRequest(CloudError):
    """The cloud will never accept this request as it is: a wrong image, flavor, key, size."""

    code = "bad-request"


class CloudUnavailable(CloudError):
    """The cloud did not answer, or failed inside: what became of the request is unknown."""

    code = "cloud-unavailable"
