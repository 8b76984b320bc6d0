# The prover's host, whose adapter is on the other host's radio; it does what the host says.
. /scripts/bluetooth.sh
attach
adapter 0 && agent 0
follow
