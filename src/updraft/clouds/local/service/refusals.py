"""How the local cloud says no."""


class RefusedError(Exception):
    """The cloud's answer is no: `code` is its own word for why."""

    def __init__(self, code: str, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.retry_after = retry_after
