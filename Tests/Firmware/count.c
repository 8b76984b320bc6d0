// A plugin of QEMU's that counts the instructions of each call of one function of the firmware, from its first instruction to its
// return, and appends the number to a file, a line for each call. It is told of blocks of instructions and not of each, and takes a
// small part of the time of `trace.c`.
//
//     -plugin count.so,out=FILE,entry=ADDRESS,skip=FIRST-LAST[,skip=…]
//
// Addresses are hexadecimal. Skipped are interrupt handlers, which come at any time: they begin and end between two blocks.

#include "plugin.h"

static uint64_t behind_previous, return_address, count;
static bool is_inside;

// A block is passed as its address, with its length in bytes and its number of instructions above.
enum { LENGTH_SHIFT = 32, COUNT_SHIFT = 48 };

static void executed(unsigned processor, void *block) {
  (void)processor;
  uint64_t address = (uint32_t)(uintptr_t)block, length = (uint16_t)((uintptr_t)block >> LENGTH_SHIFT);
  if (is_inside && address == return_address) {
    is_inside = false;
    fprintf(file, "%" PRIu64 "\n", count);
    fflush(file);
  }
  if (!is_inside && address == entry) {
    is_inside = true;
    return_address = behind_previous;
    count = 0;
  }
  count += (uintptr_t)block >> COUNT_SHIFT;
  behind_previous = address + length;
}

static void translated(uint64_t plugin, Block *block) {
  (void)plugin;
  size_t instruction_count = qemu_plugin_tb_n_insns(block), length = 0;
  uint64_t address = qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(block, 0));
  if (is_skipped(address)) return;
  for (size_t index = 0; index < instruction_count; index++) length += qemu_plugin_insn_size(qemu_plugin_tb_get_insn(block, index));
  uintptr_t passed = address | (uintptr_t)length << LENGTH_SHIFT | (uintptr_t)instruction_count << COUNT_SHIFT;
  qemu_plugin_register_vcpu_tb_exec_cb(block, executed, NO_REGISTERS, (void *)passed);
}

VISIBLE int qemu_plugin_install(uint64_t plugin, const void *machine, int argument_count, char **arguments) {
  (void)machine;
  if (!take(argument_count, arguments)) return -1;
  qemu_plugin_register_vcpu_tb_trans_cb(plugin, translated);
  return 0;
}
