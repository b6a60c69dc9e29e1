"""Makes the machine that it runs on a head, and takes that back: nothing that was there is lost on the way.

`tree` writes files in one step or not at all, `applying` carries changes out and takes them back by the
`book`; `files` says which; `host` is this machine (its programs, accounts and services); `steps` is the
order; `selftest` runs one job; `service` is the unit of a daemon where no head was made.
"""
