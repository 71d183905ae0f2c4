#!/bin/bash
# Installs what the checks use, some 200 packages with what they depend on, and ends with a
# list of them.
set -e -o pipefail
exec 3>&1 >/tests/install.log 2>&1
apt-get update -q
apt-get install -q -y --no-install-recommends sudo cron openssh-server openssh-client dbus g++ make git mariadb-server nodejs \
	openjdk-17-jdk-headless php-cli php-mysql php-mbstring php-xml php-curl php-gd php-intl php-zip apache2 libapache2-mod-php \
	python3 perl curl iproute2 procps man-db less vim-tiny rsync bc file xz-utils zip unzip sqlite3 tcl gawk
apt-get install -q -y --no-install-recommends --reinstall bc file
apt-get purge -q -y tcl
apt-get autoremove -q -y --purge
apt-get check -q
dpkg --configure -a
exec >&3 2>&1
dpkg-query -W -f '${db:Status-Status} ${Package} ${Version}\n'
dpkg --audit
dpkg --verify | sort
echo "$(find /etc /usr /var/lib -xdev | wc -l) files" >/tests/files # nearly as many in each run
getent passwd | sort
grep -ciE 'segmentation|invalid pointer|core dumped|aborted|tieralloc' /tests/install.log || true
