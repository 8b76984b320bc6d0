#!/bin/bash
# The life of the packages in a clean Debian that systemd has booted: installed, started, upgraded, purged, installed again.
#
# /packages has older/ and newer/, and certificate.pem with key.pem. Each check is reported to the host with its sentence.
set -u
exec 3<>/dev/ttyS1
stty -F /dev/ttyS1 raw -echo
echo begin >&3
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root XDG_DATA_HOME=/root/data DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
trap 'echo "end $?" >&3; systemctl poweroff --force --force' EXIT
cd /root || exit 1

# check SENTENCE COMMAND...: reports whether the command succeeds.
check() {
  local sentence=$1
  shift
  echo "== $sentence: $*"
  if "$@" >/tmp/output 2>&1; then
    echo "passed $sentence" >&3
  else
    echo "failed $sentence ($(tail -n 1 /tmp/output))" >&3
    cat /tmp/output
    journalctl --no-pager --lines 20 -u 'holdfast*'
  fi
}
# fails STATUS COMMAND...: whether the command ends with that exit status.
fails() {
  local status=$1 got=0
  shift
  "$@" || got=$?
  [ "$got" -eq "$status" ]
}
equal() { [ "$1" = "$2" ] || { echo "$1 is not $2"; false; }; }
as() { runuser -u "$1" -- "${@:2}"; }
main_process() { systemctl show --value --property MainPID "$1"; }
other_process() { [ "$2" -gt 0 ] && [ "$(main_process "$1")" -gt 0 ] && [ "$(main_process "$1")" != "$2" ]; }
is_state() { equal "$(systemctl is-active "$1")" "$2"; }
is_owned() { equal "$(stat --format '%U %G %a' "$1")" "$2"; }
unchanged() { sha256sum --quiet --check "/root/$1.sums"; }
remember() { sha256sum "${@:2}" >"/root/$1.sums"; }
ready() { curl --silent --show-error --fail "${@:2}" "$1/readyz"; }
prove() { holdfast prove --connect unix:/run/holdfast-device.socket --state phone --command "$1"; }
# A service in a folder that the device trusts, and a prover with its token.
enrol() {
  holdfast service init --dir service && holdfast service show --dir service --json >/tmp/service.json &&
    as holdfast-device holdfast device show --dir $states/holdfast-device --json >lock.json &&
    as holdfast-device holdfast device trust --dir $states/holdfast-device /tmp/service.json &&
    holdfast service device add --dir service lock.json && holdfast enroll --device lock.json --service service --state phone
}
rounds() { equal "$(as holdfast-device holdfast device audit --dir $states/holdfast-device | grep -c status=accepted)" "$1"; }
knows() { as holdfast-service holdfast-service list devices | grep "$1"; }
arguments() { tr '\0' ' ' <"/proc/$(main_process "$1")/cmdline" | grep -e "$2"; }
# All names in the file system but for what Debian keeps of every package: logs, dpkg's and systemd's records, accounts.
names() {
  find / -xdev \( -path /var/log -o -path /var/lib/dpkg -o -path /var/lib/systemd -o -path /root -o -path /tmp -o -path /var/tmp \
    -o -path /var/cache \) -prune -o -print | grep -vE '^/etc/(passwd|group|shadow|gshadow|\.pwd\.lock)' | sort
}
ours() { find /run /etc -xdev -name '*holdfast*' 2>/dev/null; }
no_more_names() { names | diff /root/names.before - && [ -z "$(ours)" ]; }
no_units() { equal "$(systemctl list-units --all --no-legend 'holdfast*'; systemctl list-unit-files --no-legend 'holdfast*')" ""; }
no_failures() { equal "$(systemctl list-units --failed --no-legend --plain)" ""; }
packages="holdfast holdfast-device holdfast-service libholdfast1 libholdfast-dev"
states=/var/lib
key=$states/holdfast-service/service.key

names >/root/names.before

# Installed. The service runs; the device waits for its owner.
check "the packages can be installed" dpkg --install /packages/older/*.deb
check "the service runs once it is installed" is_state holdfast-service active
check "it is ready" ready http://127.0.0.1:8443
check "its key was made, for its user only" is_owned $key "holdfast-service holdfast-service 600"
check "its folder is its user's only" is_owned $states/holdfast-service "holdfast-service holdfast-service 700"
check "its configuration is for its user and root only" is_owned /etc/holdfast/service.json "root holdfast-service 640"
check "without a device, the socket does not listen" is_state holdfast-device.socket inactive
check "and nothing has failed" no_failures
check "the units have no mistakes" systemd-analyze verify --man=no holdfast-service.service holdfast-device.service holdfast-device.socket
check "there are manual pages and completions" test -e /usr/share/man/man8/holdfast-service.8.gz -a \
  -e /usr/share/man/man1/holdfast-prove.1.gz -a -e /usr/share/bash-completion/completions/holdfast-service
check "the library is found by its name" bash -c "ldconfig --print-cache | grep -q 'libholdfast.so.1 '"

# The device: a socket starts it.
check "its owner makes the device" as holdfast-device holdfast device init --dir $states/holdfast-device
check "a prover is enrolled for it" enrol
check "the socket listens" systemctl start holdfast-device.socket
check "the device does not run yet" is_state holdfast-device.service inactive
check "a proof starts it, and is accepted" prove unlock
check "the device runs" is_state holdfast-device.service active
check "doctor finds it" holdfast doctor unix:/run/holdfast-device.socket --state phone
check "its socket is for the group holdfast" is_owned /run/holdfast-device.socket "root holdfast 660"
check "another user may not connect" fails 77 as nobody holdfast doctor unix:/run/holdfast-device.socket
check "it can be stopped" systemctl stop holdfast-device.service
check "and a proof starts it again" prove lock
process=$(main_process holdfast-device)
systemctl kill --signal KILL holdfast-device.service
check "a proof after it was killed is accepted" prove unlock
check "it is another process" other_process holdfast-device "$process"
check "the audit log has the three rounds" rounds 3

# Upgraded: keys and state stay, and both run again.
check "the service registers a device" as holdfast-service holdfast-service device add /dev/stdin --label front <lock.json
sed --in-place 's/^OPTIONS=.*/OPTIONS=--verbose/' /etc/holdfast/device.conf
remember kept $key $states/holdfast-device/device.key /etc/holdfast/device.conf
service=$(main_process holdfast-service) device=$(main_process holdfast-device)
check "the packages can be upgraded" dpkg --install /packages/newer/*.deb
check "the version is the newer one" equal "$(dpkg-query --show --showformat '${Version}' holdfast)" "$(cat /packages/version)"
check "the keys and the changed configuration are as before" unchanged kept
check "the service was restarted" other_process holdfast-service "$service"
check "the service is ready" ready http://127.0.0.1:8443
check "it still knows the device" knows front
check "the device was restarted" other_process holdfast-device "$device"
check "a proof is accepted by the state from before" prove unlock
check "the device uses the changed configuration" arguments holdfast-device --verbose

# Credentials: the keys are root's, and the unit passes them.
install -D -m 600 $key /etc/credstore/holdfast-service.key && rm $key
install -m 600 /packages/certificate.pem /etc/credstore/holdfast-service.certificate.pem
install -m 600 /packages/key.pem /etc/credstore/holdfast-service.key.pem
echo '{"listen": "0.0.0.0:8443", "certificate": "certificate.pem", "key": "key.pem"}' >/etc/holdfast/service.json
check "the service starts with keys that only root can read" systemctl restart holdfast-service
check "it is ready, over TLS" ready https://127.0.0.1:8443 --cacert /packages/certificate.pem
check "its package can be installed again" dpkg --install /packages/newer/holdfast-service_*.deb
check "no second key was made" test ! -e $key
check "it is ready again" ready https://127.0.0.1:8443 --cacert /packages/certificate.pem
rm -r /etc/credstore
echo '{"listen": "127.0.0.1:8443"}' >/etc/holdfast/service.json

# An installation that was cut off: there is a key, and no database yet.
systemctl stop holdfast-service
rm $states/holdfast-service/service.sqlite*
head --bytes 32 /dev/urandom >$key && chown holdfast-service: $key && chmod 600 $key
remember cut $key
check "an installation that was cut off is completed" dpkg --install /packages/newer/holdfast-service_*.deb
check "with the key that was there" unchanged cut
check "the service is ready with it" ready http://127.0.0.1:8443

# Removed: units and programs go, state stays. Purged: everything goes.
check "the packages can be removed" dpkg --remove $packages
check "the keys are still there" test -e $key -a -e $states/holdfast-device/device.key
check "nothing runs" bash -c "! ls -l /proc/*/exe 2>/dev/null | grep holdfast"
check "the packages can be purged" dpkg --purge $packages
check "no file is left" no_more_names
check "no unit is left" no_units
check "they can be installed again" dpkg --install /packages/newer/*.deb
check "the service has a new key and is ready" ready http://127.0.0.1:8443
check "nothing has failed in the end" no_failures
exit 0
