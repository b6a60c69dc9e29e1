"""updraft gives an HTCondor pool the machines its jobs need, and takes them away without losing a job."""

__version__ = "0.1.0"
DISTRIBUTION = "updraft-htcondor"
"""What pip calls it. In the public index "updraft" is somebody else's project."""
