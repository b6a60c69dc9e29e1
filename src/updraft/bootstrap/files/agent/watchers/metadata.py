"""The cloud's metadata service: open to root only. A module of its own, because what it loads is as large as
the rest of the agent, and most machines ask nothing."""

import http.client

TOKEN = "X-aws-ec2-metadata-token"  # noqa: S105 (the name of a header)


class Metadata:
    """The service at `host[:port]`, which has so many seconds for each answer."""

    def __init__(self, address: str, seconds: float) -> None:
        self._host, _, port = address.partition(":")
        self._port, self._seconds = int(port or 80), seconds

    def token(self, seconds: int) -> "tuple[int, str]":
        """Status and text of the answer to the question for a session token that is good for so long."""
        return self._ask("PUT", "/latest/api/token", {TOKEN + "-ttl-seconds": str(seconds)})

    def get(self, path: str, token: str = "") -> "tuple[int, str]":
        """Status and text of what is there. Raises OSError where nobody answers so that it can be read."""
        return self._ask("GET", path, {TOKEN: token} if token else {})

    def _ask(self, method: str, path: str, headers: "dict[str, str]") -> "tuple[int, str]":
        connection = http.client.HTTPConnection(self._host, self._port, timeout=self._seconds)
        try:
            connection.request(method, path, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read(65536).decode(errors="replace")
        # ValueError: a token that can't be in a header.
        except (http.client.HTTPException, ValueError) as error:
            raise OSError(f"no answer: {error}") from error
        finally:
            connection.close()
