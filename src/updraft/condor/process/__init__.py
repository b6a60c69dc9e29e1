"""How HTCondor is asked without waiting for it: children with deadlines, and HTCondor's own tools.

Read `children` first. The judge of strangers' expressions is one of those children.
"""
