"""The exceptions of harness_nb. Failures of tools and policies are data (see ``types.Status``), not exceptions.

::

    HarnessError
    ├── UsageError              the call is wrong: bad option, no such session, unreadable script (exit 2)
    │   └── MissingKeyError     no credentials for the chosen model
    ├── ModelError              a model could not answer, after the retries of its adapter (exit 1)
    │   ├── AuthenticationError the key was refused
    │   ├── QuotaError          the account has no credit or quota left
    │   ├── ContextOverflowError  the request is longer than the model's context window
    │   ├── RefusalError        the provider refused by its content policy
    │   └── TransientModelError rate limit, overload, cut stream: may succeed later
    ├── KernelError             the tool kernel could not be started or is lost for good
    └── StoreError              a session's files cannot be read or written
        └── SessionLockedError  another process works on that session
"""

from __future__ import annotations


class HarnessError(Exception):
    """Root of all errors that harness_nb raises on purpose. The text says what is wrong and the way out."""


class UsageError(HarnessError):
    """The caller asked for something that cannot be; nothing was started."""


class MissingKeyError(UsageError):
    """The chosen model needs credentials that are not set."""


class ModelError(HarnessError):
    """A model gave no usable reply, and its adapter has given up.

    ``code`` is the provider's error code where there is one, ``status`` the HTTP status, ``retry_after`` seconds.
    """

    def __init__(
        self, message: str, *, code: str | None = None, status: int | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.status = status
        self.retry_after = retry_after


class AuthenticationError(ModelError):
    """The provider refused the key. Never retried."""


class QuotaError(ModelError):
    """No credit or quota left. Never retried."""


class ContextOverflowError(ModelError):
    """The request does not fit into the model's context window."""


class RefusalError(ModelError):
    """The provider refused to answer by its content policy."""


class TransientModelError(ModelError):
    """Rate limit, overload, dropped or cut connection: the same request may succeed later."""


class KernelError(HarnessError):
    """The tool kernel could not be started, or is lost and cannot be restarted."""


class StoreError(HarnessError):
    """A session's files cannot be read or written."""


class SessionLockedError(StoreError):
    """Another process works on the session."""
