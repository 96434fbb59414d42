"""The one exception of the package."""


class Error(ValueError):
    """What was wrong, as a sentence for the user: "WHERE: WHY".

    `code` is one of "bad_option", "bad_file", "bad_stream", "bad_request", "unsupported", "internal".
    """

    def __init__(self, message: str, code: str = "bad_request") -> None:
        super().__init__(message)
        self.code = code
