# Security levels of links, and links that fail.
# Adapters: 0 the device's, 1 a prover's. 2 and 3 support only legacy pairing, the device's and a prover's, which have no PIN. 4 has no agent
# that would confirm pairing over LE.
. /scripts/served.sh
radio 5
for index in 0 1; do adapter "$index" && agent "$index"; done
for index in 2 3 4; do adapter "$index"; done
for index in 2 3; do
  for setting in "power off" "sc off" "ssp off" "power on"; do btmgmt -i "$index" $setting >/tmp/setting || report failed "hci$index: $setting: $(cat /tmp/setting)"; done
done
device=$(address 0) old=$(address 2)
meet holdfast /tmp/lock /tmp >/tmp/met || report failed enrolment

# refuses_to_serve NAME ENDPOINT: reports the device's output if it cannot listen.
refuses_to_serve() { trying "$1" timeout 60 holdfast device serve --dir /tmp/lock --listen "$2"; }
refuses_to_serve serve-no-adapter l2cap:00:00:00:00:00:00,psm=0x1001,hci=hci9
refuses_to_serve serve-not-ours rfcomm:00:AA:01:09:09:09,channel=5
hciconfig hci4 down
refuses_to_serve serve-down le:00:00:00:00:00:00,psm=0x80,hci=hci4

serve_all --listen "l2cap:$old,psm=0x1003" --listen "rfcomm:$old,channel=6" --listen "l2cap:$old,psm=0x1005,security=low" \
  --listen "rfcomm:$old,channel=7,security=low" --listen "l2cap:$device,psm=0x1007,security=high"
report warned "$(grep warning: /tmp/device.log | tr '\n' ' ')"

# tries NAME ENDPOINT INDEX [SECONDS]: runs a round of the adapter's prover, which waits for at most a minute, or less where it does so in
# vain.
tries() { trying "$1" timeout 300 holdfast prove --state /tmp/state --connect "$2,hci=hci$3" --command status --timeout "${4:-60}"; }

# These links are not encrypted.
(exec timeout 4 foreign_peer l2cap "$(address 3)" "$old" 4099 read) >/tmp/foreign 2>&1
report foreign "$? $(tr '\n' ' ' </tmp/foreign)"
tries l2cap-unencrypted "l2cap:$old,psm=0x1003" 3 4
tries rfcomm-unencrypted "rfcomm:$old,channel=6" 3 4
report unencrypted-answers "$(answers '.*')"
# A refused connection waits for its pairing to end.
hcitool -i hci3 dc "$old"
alone 3
tries l2cap-low "l2cap:$old,psm=0x1005" 3
tries rfcomm-low "rfcomm:$old,channel=7" 3
tries l2cap-medium "$(place l2cap)" 1

# Endpoints that do not exist.
tries no-adapter "$(place l2cap)" 9
tries adapter-down "$(place l2cap)" 4
hciconfig hci4 up && patiently running 4
stranger=00:AA:01:09:09:09
tries l2cap-nobody "l2cap:$stranger,psm=0x1001" 1 8
tries rfcomm-nobody "rfcomm:$stranger,channel=5" 1 8
tries l2cap-no-listener "l2cap:$device,psm=0x100d" 1
tries rfcomm-no-listener "rfcomm:$device,channel=9" 1

alone 1
tries le-medium "$(place le)" 1
tries le-no-listener "le:$device,psm=0x90" 1
alone 1

# breaks NAME COMMAND...: runs the command during the rounds of a prover, and reports how long the prover continues after it.
breaks() {
  name=$1 accepted=$(answers accepted)
  shift
  (trying "$name" timeout 300 holdfast bench rounds --state /tmp/state --connect "$(endpoint "$kind" 1)" --rounds 1000000 --timeout 60) &
  prover=$!
  patiently answered accepted "$((accepted + 5))"
  "$@" >/tmp/broken
  broken=$(uptime_seconds)
  wait "$prover"
  report "$name-ended" "$(echo "$(uptime_seconds) $broken" | awk '{ print $1 - $2 }')"
}
for kind in l2cap rfcomm; do
  breaks "$kind-lost" hcitool -i hci1 dc "$device"
  proves "$kind-after" state "$kind" 1
done
kind=l2cap
breaks prover-off btmgmt -i 1 power off
btmgmt -i 1 power on >/tmp/power
proves prover-on state l2cap 1
breaks device-off btmgmt -i 0 power off
btmgmt -i 0 power on >/tmp/power
proves device-on state rfcomm 1

# high does not accept pairing without a user.
before=$(answers '.*')
tries l2cap-high "l2cap:$device,psm=0x1007" 1 4
report high-answers "$(($(answers '.*') - before))"

# Over LE, an agent is asked whether the hosts may pair. The kernel continues for a while to look for an absent host, so that comes last.
before=$(answers '.*')
tries le-unconfirmed "$(place le)" 4 4
report unconfirmed-answers "$(($(answers '.*') - before))"
tries le-nobody "le:$stranger,psm=0x80" 1 4
trying last holdfast prove --state /tmp/state --connect unix:/tmp/lock.sock --command status --timeout 60
