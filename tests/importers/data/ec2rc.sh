#!/bin/bash
NOVARC=$(readlink -f "${BASH_SOURCE:-${0}}" 2>/dev/null)
NOVA_KEY_DIR=${NOVARC%/*}
export EC2_ACCESS_KEY=5f0c0ffee0access0canary
export EC2_SECRET_KEY=9ab1edcaf0secret0canary
export EC2_URL=https://cloud.example.org:8788/services/Cloud
export EC2_USER_ID=42
export EC2_PRIVATE_KEY=${NOVA_KEY_DIR}/pk.pem
export S3_URL=https://cloud.example.org:8080
export EC2_SITE=north
