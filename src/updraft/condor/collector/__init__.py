"""What the collectors know and are told: slots, controllers, machines that ask for their tokens.

In come the pool's configuration and deadlines; out come slots and views as the core has them. Read `views`
first: it runs in a child process, as all that asks HTCondor does.
"""
