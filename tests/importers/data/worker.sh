#!/bin/bash
# A worker of the analysis group
ADDRESS=$(hostname -I | cut -d' ' -f1)
wget -qO - http://repo.example.org/htcondor/key | apt-key add -
apt-get update
DEBIAN_FRONTEND=noninteractive apt-get -y install htcondor
cat > /etc/condor/condor_config.local <<CONF
DAEMON_LIST = MASTER, STARTD
CONDOR_HOST = %ipv4%
NETWORK_INTERFACE = $ADDRESS
CONF
condor_store_cred -p pool0canary -f /etc/condor/pool_password add
systemctl restart condor
wget http://software.example.org/site.tar.gz
mkdir -p /software && tar -C /software -xzf site.tar.gz
echo "%ipv4% %fqdn% head" >> /etc/hosts
mount -t nfs -o rw "$(getent hosts %fqdn% | cut -d' ' -f1)":/home /home
DB_PASSWORD='db0canary'
apt-get -y install docker.io
usermod -aG docker condor
