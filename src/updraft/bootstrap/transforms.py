"""What a schedd does to jobs that say what they want: their requirements say it, too.

HTCondor's own tools then tell why such a job waits (`condor_q -better-analyze`), and it stays away from
machines of the site that are none of ours. The workers' START holds it to the same without this.
"""

from updraft.core.terms import OWN_REQUIREMENTS, RESTRICTIVE, TARGET_ANNEX, annex_requirement, requirements

FILE = "91-updraft-terms.conf"
_NAME = "UpdraftTerms"


def schedd_config() -> str:
    """HTCondor's configuration of a schedd with the transform; of 23.9 and later.

    A job's own requirements are copied, never put in as text: as text they would be read for macros, and a
    `$ENV(…)` of a job's would show it the schedd's environment.
    """
    asks = " || ".join(f"{name} isnt undefined" for name in (*RESTRICTIVE, TARGET_ANNEX))
    return (
        f"JOB_TRANSFORM_NAMES = $(JOB_TRANSFORM_NAMES) {_NAME}\n"
        f"JOB_TRANSFORM_{_NAME} @=end\n"
        f"  REQUIREMENTS {asks}\n"
        f"  COPY Requirements {OWN_REQUIREMENTS}\n"
        f"  SET Requirements MY.{OWN_REQUIREMENTS} && {requirements()} && {annex_requirement()}\n"
        "@end\n"
    )
