"""`updraft demo`, on real machines or in virtual time, and `make demo-jobs`. Read `demo` first."""
