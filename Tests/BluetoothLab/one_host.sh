# BlueZ's own test programs, between two adapters of one host. Their numbers must be decimal. Each begins once the link of the previous
# one has ended, because a request during the end of a link is refused.
. /scripts/bluetooth.sh
radio 2
for index in 0 1; do adapter "$index" && agent "$index"; done
peer=$(address 1)
exchange l2ping l2ping -i hci0 -c 2 -d 0 "$peer"

listening l2cap l2test -i hci1 -d -P 4097 -I 672
alone 0
exchange l2cap l2test -i hci0 -s -P 4097 -b 600 -N 5 -g 500 "$peer"
received l2cap

listening rfcomm rctest -i hci1 -d -P 5
alone 0
exchange rfcomm rctest -i hci0 -s -P 5 -b 100 -N 5 "$peer"
received rfcomm
listening rfcomm-secured rctest -i hci1 -d -P 6 -A -E
alone 0
exchange rfcomm-secured rctest -i hci0 -s -P 6 -b 100 -N 5 -A -E "$peer"
received rfcomm-secured

# A closed LE channel drops data that still waits for its peer's credits: -g is the time before the close.
btmgmt -i 1 advertising on >/dev/null
listening le l2test -i hci1 -d -V le_public -P 128 -I 672
alone 0
exchange le l2test -i hci0 -s -V le_public -P 128 -b 600 -N 5 -g 500 "$peer"
received le
listening le-secured l2test -i hci1 -d -V le_public -P 130 -I 672 -E
alone 0
exchange le-secured l2test -i hci0 -s -V le_public -P 130 -b 600 -N 5 -g 500 -E "$peer"
received le-secured
