import HoldfastMeasurement

/// The usual causes of a changed component. The raw value is its name in JSON.
package enum ChangeCause: String {
  case appUpdate = "app-update"
  case appTampered = "app-tampered"
  case systemUpdate = "system-update"
  case libraryUpgrade = "library-upgrade"
  case libraryLoaded = "library-loaded"
  case memoryPatched = "memory-patched"
  case postureChanged = "posture-changed"
  case injectedCode = "injected-code"
  case replacedFile = "replaced-file"
  case preload
  case debugger
  case instrumentation
  case supervisor
  case endedSinceBaseline = "ended-since-baseline"
  case otherMachine = "other-machine"
  case clonedDisk = "cloned-disk"
  case reinstalled
  case virtualMachineMoved = "virtual-machine-moved"
  case restoredBackup = "restored-backup"
  case storageReplaced = "storage-replaced"
}

/// The advice about a changed component. The raw value is its name in JSON.
package enum ChangeAdvice: String {
  case enrolAgain = "enrol-again"
  case endAndRestart = "end-and-restart"
  case checkMachine = "check-machine"
  case restoreSecret = "restore-secret"
}

/// The causes and the advice for a changed component, given the other changes and the findings in the running process.
package struct ChangeExplanation {
  package let causes: [ChangeCause]
  package let advice: ChangeAdvice

  init(of id: String, changed: Set<String>, findings: Set<Finding>) {
    switch id {
    case "app.image": (causes, advice) = ([.appUpdate, .appTampered], .enrolAgain)
    case "app.text": (causes, advice) = Self.codeChange(changed, findings)
    case "app.injected":
      (causes, advice) = (Self.causes(findings, [.preload, .replacedFile, .injectedCode]), .endAndRestart)
    case "app.debug":
      (causes, advice) = (Self.causes(findings, [.debugger, .instrumentation, .supervisor]), .endAndRestart)
    case "host.posture": (causes, advice) = ([.systemUpdate, .postureChanged], .enrolAgain)
    case "os.release": (causes, advice) = ([.systemUpdate], .enrolAgain)
    case "device.machine": (causes, advice) = ([.otherMachine, .clonedDisk, .reinstalled], .checkMachine)
    case "device.cpu": (causes, advice) = ([.otherMachine, .virtualMachineMoved, .clonedDisk], .checkMachine)
    case "device.secret": (causes, advice) = ([.restoredBackup, .storageReplaced, .clonedDisk], .restoreSecret)
    default: (causes, advice) = ([], .enrolAgain)
    }
  }

  /// Returns the causes of changed code: injected code, another executable file or system, a library, or patched
  /// memory.
  private static func codeChange(_ changed: Set<String>, _ findings: Set<Finding>) -> ([ChangeCause], ChangeAdvice) {
    let injected = [ChangeCause.preload, .injectedCode, .debugger, .instrumentation].filter {
      Set(findings.map(\.cause)).contains($0)
    }
    let update: [ChangeCause] = changed.contains("app.image") ? [.appUpdate] : []
    let system: [ChangeCause] = changed.contains("os.release") ? [.systemUpdate] : []
    return (
      injected + update + system + [.libraryUpgrade, .libraryLoaded, .memoryPatched],
      injected.isEmpty ? .enrolAgain : .endAndRestart
    )
  }

  /// Returns the members of `possible` that a present finding supports, or `endedSinceBaseline` if there are none.
  private static func causes(_ findings: Set<Finding>, _ possible: [ChangeCause]) -> [ChangeCause] {
    let found = Set(findings.map(\.cause))
    let causes = possible.filter(found.contains)
    return causes.isEmpty ? [.endedSinceBaseline] : causes
  }
}

extension Finding {
  /// The name of the finding in JSON.
  package var identifier: String {
    switch self {
    case .anonymousCode: "anonymous-code"
    case .writableCode: "writable-code"
    case .preloadVariable: "ld-preload"
    case .auditVariable: "ld-audit"
    case .preloadFile: "ld-so-preload"
    case .unknownToLoader: "unknown-to-loader"
    case .unknownToKernel: "unknown-to-kernel"
    case .replacedFile: "replaced-file"
    case .startedByLoader: "started-by-loader"
    case .patchedKernelCode: "patched-kernel-code"
    case .tracer: "tracer"
    case .agentThread: "agent-thread"
    case .agentMapping: "agent-mapping"
    case .agentListener: "agent-listener"
    case .seccompFilter: "seccomp-filter"
    case .dumpable: "dumpable"
    }
  }

  fileprivate var cause: ChangeCause {
    switch self {
    case .anonymousCode, .writableCode, .unknownToLoader, .unknownToKernel, .patchedKernelCode: .injectedCode
    case .preloadVariable, .auditVariable, .preloadFile, .startedByLoader: .preload
    case .replacedFile: .replacedFile
    case .tracer: .debugger
    case .agentThread, .agentMapping, .agentListener: .instrumentation
    case .seccompFilter, .dumpable: .supervisor
    }
  }
}
