// The plugins of QEMU's in this folder share this part of QEMU 7.2's qemu-plugin.h, which Debian does not package, and their arguments.

#pragma once

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct qemu_plugin_tb Block;
typedef struct qemu_plugin_insn Instruction;
size_t qemu_plugin_tb_n_insns(const Block *block);
Instruction *qemu_plugin_tb_get_insn(const Block *block, size_t index);
uint64_t qemu_plugin_insn_vaddr(const Instruction *instruction);
size_t qemu_plugin_insn_size(const Instruction *instruction);
bool qemu_plugin_mem_is_store(uint32_t access);
unsigned qemu_plugin_mem_size_shift(uint32_t access);
void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t plugin, void (*translated)(uint64_t plugin, Block *block));
void qemu_plugin_register_vcpu_tb_exec_cb(Block *block, void (*executed)(unsigned processor, void *passed), int flags, void *passed);
void qemu_plugin_register_vcpu_insn_exec_cb(
    Instruction *instruction, void (*executed)(unsigned processor, void *passed), int flags, void *passed);
void qemu_plugin_register_vcpu_mem_cb(
    Instruction *instruction, void (*accessed)(unsigned processor, uint32_t access, uint64_t address, void *passed), int flags,
    int directions, void *passed);
enum { NO_REGISTERS = 0, READS_AND_WRITES = 3 };

#define VISIBLE __attribute__((visibility("default")))
VISIBLE int qemu_plugin_version = 1;

enum { MOST_SKIPPED = 8 };
// The file that is written, and the first address of the function that is followed.
static FILE *file;
static uint64_t entry;
static struct {
  uint64_t first, last;
} skipped[MOST_SKIPPED];
static int skipped_count;

static bool is_skipped(uint64_t address) {
  for (int index = 0; index < skipped_count; index++) {
    if (skipped[index].first <= address && address <= skipped[index].last) return true;
  }
  return false;
}

// Takes the arguments. False if there is another one, or a file or function is missing.
static bool take(int argument_count, char **arguments) {
  for (int index = 0; index < argument_count; index++) {
    char *value = strchr(arguments[index], '=');
    if (value == NULL) return false;
    *value++ = 0;
    if (strcmp(arguments[index], "out") == 0) {
      file = fopen(value, "w");
    } else if (strcmp(arguments[index], "entry") == 0) {
      entry = strtoull(value, NULL, 16);
    } else if (strcmp(arguments[index], "skip") == 0 && skipped_count < MOST_SKIPPED && strchr(value, '-')) {
      skipped[skipped_count].first = strtoull(value, NULL, 16);
      skipped[skipped_count++].last = strtoull(strchr(value, '-') + 1, NULL, 16);
    } else {
      return false;
    }
  }
  return file != NULL && entry != 0;
}
