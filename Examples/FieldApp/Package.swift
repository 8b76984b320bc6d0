// swift-tools-version: 6.2
import PackageDescription

let package = Package(
  name: "FieldApp", dependencies: [.package(name: "holdfast", path: "../..")],
  targets: [
    .executableTarget(
      name: "FieldApp", dependencies: [.product(name: "HoldfastProver", package: "holdfast")],
      plugins: [.plugin(name: "HoldfastProofKeys", package: "holdfast")])
  ])
