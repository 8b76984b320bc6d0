# A device at every transport at once, and provers that are accepted and denied over each.
. /scripts/served.sh
together 3
meet holdfast /tmp/lock /tmp --format jose >/tmp/met || report failed enrolment
holdfast enroll --device /tmp/lock.json --service /tmp/service --state /tmp/once --maximum-uses 1 >/tmp/met || report failed enrolment
report token "$(cat /tmp/state/devices/*/measurement_token.jose | wc -c)"
# hci2 has a random address, which exists only for LE.
static=C0:00:00:00:00:02
for setting in "power off" "bredr off" "static-addr $static" "power on" "advertising on"; do
  btmgmt -i 2 $setting >/dev/null || report failed "hci2: $setting"
done
serve_all --listen "le:00:00:00:00:00:00,psm=130,security=low"
# wholly NAME KIND: runs a round in which the whole token is sent, with the longest parameters.
longest=$(for number in 1 2 3 4 5 6 7 8; do printf -- '--parameter %063d%d ' 0 "$number"; done)
wholly() {
  rm -f /tmp/state/devices/*/remembered
  proves "$1" state "$2" 1 $longest
}
refuses() { trying "$1-refused" holdfast prove --state /tmp/state --connect "$(endpoint "$1" 1)" --command open --timeout 60; }

wholly l2cap-accepted l2cap
refuses l2cap
# A round with a remembered token over a new link, recorded on the air.
alone 1
btmon -i 1 -w /tmp/air >/tmp/recorded &
recorder=$!
patiently [ -s /tmp/air ]
proves remembered state l2cap 1
kill "$recorder"
wait "$recorder"
report air "$(base64 -w 0 /tmp/air)"

wholly rfcomm-accepted rfcomm
refuses rfcomm
proves once once rfcomm 1

# BlueZ's own test programs as clients: they do not send a valid answer. Each stays for four seconds, because a device whose peer has
# gone before the challenge was sent has nothing to answer.
exchange l2test l2test -i hci1 -s -P "$PSM" -b 600 -N 1 -g 4000 "$device"
patiently answered malformed 1
exchange rctest rctest -i hci1 -s -P "$CHANNEL" -b 600 -N 1 -C 1 -D 4000 "$device"
patiently answered malformed 2
report malformed "$(answers malformed)"

alone 1
wholly le-accepted le
refuses le
proves twice once le 1
trying le-random holdfast prove --state /tmp/state --connect "le:$static,psm=130,type=random,hci=hci1" --command status --timeout 60
