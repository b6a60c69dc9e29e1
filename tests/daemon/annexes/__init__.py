"""Annexes as the whole daemon sees to them: asked for, judged, kept within their settings and leases."""
