import HoldfastMeasurement
import HoldfastProver

extension ChangeCause {
  /// The cause for a person.
  var text: String {
    switch self {
    case .appUpdate: "the app was updated"
    case .appTampered: "the executable file was changed"
    case .systemUpdate: "the operating system was updated"
    case .libraryUpgrade: "a library was upgraded, or another one is found first (LD_LIBRARY_PATH)"
    case .libraryLoaded: "a plugin, or a module for names of users and hosts (NSS), was loaded"
    case .postureChanged: "settings of the kernel or the host changed; holdfast posture shows them"
    case .memoryPatched: "code was patched in memory, by a debugger or an instrumentation tool"
    case .injectedCode: "something put code into the process"
    case .replacedFile: "the app or a library was updated while the app ran"
    case .preload: "a library is preloaded (LD_PRELOAD, LD_AUDIT or /etc/ld.so.preload)"
    case .debugger: "a debugger or tracer (gdb, strace) is attached"
    case .instrumentation: "an instrumentation tool such as Frida is active"
    case .supervisor:
      "the app was started under a seccomp filter, in a sandbox, or by a process that answers its system calls"
    case .endedSinceBaseline: "something that was active when the baseline was taken has ended"
    case .otherMachine: "this is another machine, or its processor board was replaced"
    case .clonedDisk: "the disk, or its image, is a copy of another machine's"
    case .reinstalled: "the operating system was installed again"
    case .virtualMachineMoved: "the virtual machine moved to another host"
    case .restoredBackup: "a backup with another host's device.secret was restored"
    case .storageReplaced: "the app's storage was removed or replaced, or another user runs the app"
    }
  }
}

extension ChangeAdvice {
  /// The advice for a person.
  var text: String {
    switch self {
    case .enrolAgain:
      "if you expected the update or change, enrol again; if not, stop using this host"
    case .endAndRestart:
      "stop or remove it and start the app again; if you do not know where it comes from, stop using this host"
    case .checkMachine:
      "if the machine was replaced or installed again on purpose, enrol it as a new one; if not, stop using this host and"
        + " look for the one that it was copied from"
    case .restoreSecret:
      "restore the device.secret that belongs to this host, or enrol again; if nobody changed it, stop using this host"
    }
  }
}

extension Finding {
  /// The finding for a person.
  var text: String {
    switch self {
    case .anonymousCode: "there is executable memory without a file behind it"
    case .writableCode: "code that is mapped from a file is writable"
    case .preloadVariable: "LD_PRELOAD is set"
    case .auditVariable: "LD_AUDIT is set"
    case .preloadFile: "/etc/ld.so.preload names a library"
    case .unknownToLoader: "there is code that the dynamic loader does not list"
    case .unknownToKernel: "the dynamic loader lists code that is not in memory"
    case .replacedFile: "the file of running code was replaced or deleted: start the app again"
    case .startedByLoader: "the app was started by running the dynamic loader with its name"
    case .patchedKernelCode: "the code that the kernel maps into every process was overwritten"
    case .tracer: "a debugger or tracer is attached"
    case .agentThread: "a thread has a name that an instrumentation tool uses"
    case .agentMapping: "a file of an instrumentation tool is mapped"
    case .agentListener: "a program listens on the port of an instrumentation tool"
    case .seccompFilter:
      "the app's system calls pass through a seccomp filter, which can answer them instead of the kernel"
    case .dumpable: "other processes can read this one, although the system confirmed that they cannot"
    }
  }
}
