# An adversary at a device, over each transport of Bluetooth.
. /scripts/served.sh
together 2
meet holdfast /tmp/lock /tmp >/tmp/met || report failed enrolment
serve_all
for kind in l2cap rfcomm le; do
  trying "$kind" timeout 200 holdfast attack "$(endpoint "$kind" 1)" --state /tmp/state --service /tmp/service --skip late-answer
done
