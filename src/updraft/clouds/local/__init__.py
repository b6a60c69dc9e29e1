"""The cloud on one machine: a small real cloud, of namespaces on this host, and the driver for it.

`image` makes what machines boot from, `process` starts and stops a cloud and enters its machines, `driver` is
its driver. Everything else runs inside the cloud.
"""
