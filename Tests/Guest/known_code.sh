# A user measures a program and two copies of a library, all root's on F2FS. A former owner still writes to one of the copies.
mount /dev/vda /disk
# The kernel writes back nothing by itself: each write-back shows the next write in the file's change time.
echo 0 >/proc/sys/vm/dirty_writeback_centisecs
cp /usr/bin/holdfast /disk/holdfast
mkdir /disk/plain /disk/taken /tmp/user
for folder in plain taken; do cp -L /usr/lib/x86_64-linux-gnu/libcrypto.so.3 "/disk/$folder"; done
chown nobody /disk/taken/libcrypto.so.3 /tmp/user
sync
report system "$(grep ' /disk ' /proc/mounts | cut -d ' ' -f 3)"
su -s /bin/sh nobody -c 'exec former_owner /disk/taken/libcrypto.so.3 /tmp/user/mapped' &
writer=$!
until [ -e /tmp/user/mapped ]; do kill -0 "$writer" && sleep 0.1 || break; done
chown root /disk/taken/libcrypto.so.3
# A change that is more than two seconds old counts as old.
age() { echo "$(($(date +%s) - $(stat -c %Z /disk/taken/libcrypto.so.3)))"; }
for _ in $(seq 20); do
  sleep 1
  [ "$(age)" -le 2 ] || break
done
report age "$(age)"
for folder in plain taken; do
  reporting "$folder" su -s /bin/sh nobody -c \
    "LD_LIBRARY_PATH=/disk/$folder TMPDIR=/tmp/user XDG_DATA_HOME=/tmp/user /disk/holdfast bench measure --rounds 5 --json"
done
report writing "$(kill -0 "$writer" && echo yes)"
