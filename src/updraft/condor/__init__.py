"""HTCondor: what a pool is asked and told. The only room that loads HTCondor's bindings.

In come the pool's configuration and deadlines; out come the core's values (`base` is the contract). Read
`pool` first; reads run in child processes (`process`), since the bindings hold the interpreter.
"""
