# The prover's guest, whose adapter is on the other guest's radio; it follows the host's commands.
. /scripts/bluetooth.sh
attach
adapter 0 && agent 0
follow
