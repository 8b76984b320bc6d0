// A plugin of QEMU's that follows each call of one function of the firmware, from its first instruction to its return. For each
// call, it appends a line to a file: the number of instructions, and a digest of every address that was executed, read or
// written, in their order. Two calls with the same line took the same branches and touched the same memory.
//
//     -plugin trace.so,out=FILE,entry=ADDRESS,skip=FIRST-LAST[,skip=…]
//
// Addresses are hexadecimal. Skipped are interrupt handlers, which come at any time.

#include "plugin.h"

static uint64_t behind_previous, return_address, count, digest;
static bool is_inside;

static void mix(uint64_t value) {
  digest = (digest ^ value) * 0x9E3779B97F4A7C15;
  digest ^= digest >> 29;
}

// An instruction is passed as its address, with its size above.
enum { SIZE_SHIFT = 32 };

static void executed(unsigned processor, void *instruction) {
  (void)processor;
  uint64_t address = (uint32_t)(uintptr_t)instruction, size = (uintptr_t)instruction >> SIZE_SHIFT;
  if (is_inside && address == return_address) {
    is_inside = false;
    fprintf(file, "%" PRIu64 " %016" PRIx64 "\n", count, digest);
    fflush(file);
  }
  if (!is_inside && address == entry) {
    is_inside = true;
    return_address = behind_previous;
    count = digest = 0;
  }
  if (is_inside) {
    count++;
    mix(address);
  }
  behind_previous = address + size;
}

static void accessed(unsigned processor, uint32_t access, uint64_t address, void *at) {
  (void)processor, (void)at;
  if (is_inside) mix(address << 8 | qemu_plugin_mem_size_shift(access) << 1 | qemu_plugin_mem_is_store(access));
}

static void translated(uint64_t plugin, Block *block) {
  (void)plugin;
  for (size_t index = 0; index < qemu_plugin_tb_n_insns(block); index++) {
    Instruction *instruction = qemu_plugin_tb_get_insn(block, index);
    uint64_t address = qemu_plugin_insn_vaddr(instruction), size = qemu_plugin_insn_size(instruction);
    if (is_skipped(address)) continue;
    void *passed = (void *)(uintptr_t)(address | size << SIZE_SHIFT);
    qemu_plugin_register_vcpu_insn_exec_cb(instruction, executed, NO_REGISTERS, passed);
    qemu_plugin_register_vcpu_mem_cb(instruction, accessed, NO_REGISTERS, READS_AND_WRITES, NULL);
  }
}

VISIBLE int qemu_plugin_install(uint64_t plugin, const void *machine, int argument_count, char **arguments) {
  (void)machine;
  if (!take(argument_count, arguments)) return -1;
  qemu_plugin_register_vcpu_tb_trans_cb(plugin, translated);
  return 0;
}
