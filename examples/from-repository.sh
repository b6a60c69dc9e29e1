#!/bin/sh
# Runs a program of a CernVM-FS repository: from-repository.sh REPOSITORY PROGRAM
echo "Job started at $(date) => <="
ls -l "/cvmfs/$1" || exit 1
echo
"/cvmfs/$1/$2"
status=$?
echo
echo "Job finished at $(date)"
exit $status
