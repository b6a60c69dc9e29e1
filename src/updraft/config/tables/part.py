"""What every table of `updraft.toml` has in common."""

from pydantic import BaseModel, ConfigDict


class Part(BaseModel):
    """One table of the file: frozen once read, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, strict=True)
