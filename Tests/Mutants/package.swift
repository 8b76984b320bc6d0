// What follows is appended to a copy of this file by `make mutants` and `make reader-mutants`.
for target in package.targets {
  if !KEPT.contains("VersionPlugin") { target.plugins = nil }
  if MUTATED.contains(target.name) { target.dependencies.append("CMutant") }
}
package.targets.append(.target(name: "CMutant", path: "Tests/Mutants/CMutant"))
package.targets.removeAll { !KEPT.contains($0.name) }
(package.products, package.dependencies, package.traits) = ([], [], [])
