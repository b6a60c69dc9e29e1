"""HTCondor's bindings, loaded without a configuration: their functions are part of the language of ads.

They read the configuration once, when they are loaded, and what they are told for it is taken back: whatever
the tests start later (an image's build, a daemon) has the environment that it would have had.
"""

import warnings

import pytest

with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of the configuration, which isn't there
    patch.setenv("CONDOR_CONFIG", "ONLY_ENV")
    import htcondor2

__all__ = ["htcondor2"]
