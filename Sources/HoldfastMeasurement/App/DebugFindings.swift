/// Who watches the process: a tracer, or an instrumentation agent.
struct DebugFindings {
  /// What was found, for the digest.
  private(set) var findings = Findings()
  /// Whether a tracer is attached to any thread.
  private(set) var hasTracer = false
  /// Whether there are traces of an instrumentation agent.
  private(set) var hasAgent = false

  /// Where Frida's server listens unless told otherwise.
  private static let agentPort: UInt16 = 27042

  /// Looks at threads, mapped files and listening sockets.
  init(map: MemoryMap, files: HostFiles) throws(MeasurementError) {
    for thread in try ThreadStatus.all(files) {
      if thread.isTraced { hasTracer = true }
      if Self.isAgentThread(thread.name[...]) { noteAgent("agent thread", thread.name) }
    }
    for mapping in map.mappings where Self.isAgentFile(mapping.name[...]) { noteAgent("agent mapping", []) }
    if try ListeningSockets.contain(port: Self.agentPort, files) { noteAgent("agent listener", []) }
    if hasTracer { findings.note("tracer") }
  }

  private mutating func noteAgent(_ kind: StaticString, _ details: [UInt8]) {
    hasAgent = true
    findings.note(kind, details: details)
  }

  /// Names that Frida gives its threads. `gmain` and `gdbus` are left out: every GLib program has them.
  private static func isAgentThread(_ name: ArraySlice<UInt8>) -> Bool {
    name.equals("gum-js-loop") || name.equals("pool-frida") || name.equals("linjector") || name.contains("frida")
  }

  private static func isAgentFile(_ name: ArraySlice<UInt8>) -> Bool {
    name.contains("frida-agent") || name.contains("frida-gadget") || name.contains("libgadget")
      || name.contains("linjector")
  }
}
