/// What can be wrong with a process.
public enum Finding: Sendable, Hashable, CaseIterable {
  // In `app.injected`.
  case anonymousCode, writableCode, preloadVariable, auditVariable, preloadFile, unknownToLoader, unknownToKernel
  case replacedFile, startedByLoader, patchedKernelCode
  // In `app.debug`.
  case tracer, agentThread, agentMapping, agentListener, seccompFilter, dumpable

  /// The name that goes into the digest.
  var name: StaticString {
    switch self {
    case .anonymousCode: "anonymous code"
    case .writableCode: "writable code"
    case .preloadVariable: "LD_PRELOAD"
    case .auditVariable: "LD_AUDIT"
    case .preloadFile: "ld.so.preload"
    case .unknownToLoader: "unknown to the loader"
    case .unknownToKernel: "unknown to the kernel"
    case .replacedFile: "replaced file"
    case .startedByLoader: "started by the loader"
    case .patchedKernelCode: "patched kernel code"
    case .tracer: "tracer"
    case .agentThread: "agent thread"
    case .agentMapping: "agent mapping"
    case .agentListener: "agent listener"
    case .seccompFilter: "seccomp filter"
    case .dumpable: "dumpable"
    }
  }
}
