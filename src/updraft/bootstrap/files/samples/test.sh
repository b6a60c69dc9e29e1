#!/bin/sh
# Works for a while, and says where it was.
echo "job $2 began on $(hostname)"
sleep "$1"
echo "job $2 is done"
