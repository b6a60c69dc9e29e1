"""What a head can be: the pool's central manager, a submit node of it, or both."""

CENTRAL_MANAGER = "central-manager"
SUBMIT = "submit"
ROLES = (CENTRAL_MANAGER, SUBMIT)
