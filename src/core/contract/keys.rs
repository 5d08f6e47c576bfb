//! Every label, annotation, taint and finalizer, once (contract 1, 2).

/// API group of both kinds.
pub const GROUP: &str = "cocoonset.cocoonstack.io";
/// The version served and stored.
pub const VERSION: &str = "v1";
/// `apiVersion` of both kinds.
pub const API_VERSION: &str = "cocoonset.cocoonstack.io/v1";
/// Kind of the set.
pub const SET_KIND: &str = "CocoonSet";
/// Kind of the request.
pub const HIBERNATION_KIND: &str = "CocoonHibernation";
/// Finalizer of a CocoonSet.
pub const SET_FINALIZER: &str = "cocoonset.cocoonstack.io/finalizer";
/// Finalizer of a CocoonHibernation.
pub const HIBERNATION_FINALIZER: &str = "cocoonhibernation.cocoonset.cocoonstack.io/finalizer";
/// Only keys under these prefixes are ours to read.
pub const PREFIXES: [&str; 3] = ["cocoonset.cocoonstack.io/", "vm.cocoonstack.io/", "cocoonstack.io/"];

/// Label: the set a pod belongs to; list selector.
pub const NAME: &str = "cocoonset.cocoonstack.io/name";
/// Label: `main`, `sub-agent` or `toolbox`.
pub const ROLE: &str = "cocoonset.cocoonstack.io/role";
/// Label: decimal slot of an agent, name of a toolbox.
pub const SLOT: &str = "cocoonset.cocoonstack.io/slot";
/// Label: the set's name, for other people's tools.
pub const APP_NAME: &str = "app.kubernetes.io/name";
/// Node label and nodeSelector: the pool.
pub const POOL: &str = "cocoonstack.io/pool";
/// Node label and nodeSelector: the snapshot compatibility class.
pub const CPU_CLASS: &str = "cocoonstack.io/snapshot-cpu-class";
/// Node label: a node of ours.
pub const VM_NODE: &str = "node-role.kubernetes.io/cocoon-vm";
/// Taint and toleration of our nodes.
pub const PROVIDER_TAINT: &str = "virtual-kubelet.io/provider";
/// Value of that taint.
pub const PROVIDER: &str = "cocoon";
/// Node label that affinity compares.
pub const HOSTNAME: &str = "kubernetes.io/hostname";

/// VM name.
pub const VM_NAME: &str = "vm.cocoonstack.io/name";
/// VM image.
pub const IMAGE: &str = "cocoonset.cocoonstack.io/image";
/// `clone`, `run` or `static`.
pub const MODE: &str = "cocoonset.cocoonstack.io/mode";
/// Guest family.
pub const OS: &str = "cocoonset.cocoonstack.io/os";
/// Hypervisor.
pub const BACKEND: &str = "vm.cocoonstack.io/backend";
/// Snapshot policy of the set.
pub const SNAPSHOT_POLICY: &str = "cocoonset.cocoonstack.io/snapshot-policy";
/// Root volume, canonical quantity.
pub const STORAGE: &str = "cocoonset.cocoonstack.io/storage";
/// Network name.
pub const NETWORK: &str = "cocoonset.cocoonstack.io/network";
/// Connection type override.
pub const CONN_TYPE: &str = "vm.cocoonstack.io/conn-type";
/// TCP probe port.
pub const PROBE_PORT: &str = "vm.cocoonstack.io/probe-port";
/// Bypass the image cache.
pub const FORCE_PULL: &str = "cocoonset.cocoonstack.io/force-pull";
/// Page cache instead of O_DIRECT.
pub const NO_DIRECT_IO: &str = "vm.cocoonstack.io/no-direct-io";
/// We manage this VM.
pub const MANAGED: &str = "cocoonset.cocoonstack.io/managed";
/// The VM that a sub-agent is a fork of.
pub const FORK_FROM: &str = "vm.cocoonstack.io/fork-from";

/// VM id.
pub const VM_ID: &str = "vm.cocoonstack.io/id";
/// VM address.
pub const VM_IP: &str = "vm.cocoonstack.io/ip";
/// VM VNC port.
pub const VNC_PORT: &str = "vm.cocoonstack.io/vnc-port";
/// Lifecycle state.
pub const LIFECYCLE_STATE: &str = "vm.cocoonstack.io/lifecycle-state";
/// Generation that the state answers to.
pub const LIFECYCLE_GENERATION: &str = "vm.cocoonstack.io/lifecycle-observed-generation";
/// Words to the state.
pub const LIFECYCLE_MESSAGE: &str = "vm.cocoonstack.io/lifecycle-state-message";
/// The node agent's own note on guest fix-up; `failed` there is nobody's work (R16).
pub const POST_CLONE_STATE: &str = "vm.cocoonstack.io/post-clone-state";

/// The set generation a pod answers to.
pub const GENERATION: &str = "cocoonset.cocoonstack.io/generation";
/// Hibernate this VM.
pub const HIBERNATE: &str = "vm.cocoonstack.io/hibernate";
/// Boot by restoring the `hibernate` snapshot.
pub const RESTORE: &str = "vm.cocoonstack.io/restore-from-hibernate";
/// Keep the snapshot files when the pod goes.
pub const KEEP_SNAPSHOT: &str = "vm.cocoonstack.io/keep-snapshot-on-delete";
/// Clone from a directory of the host; a person's.
pub const CLONE_FROM_DIR: &str = "vm.cocoonstack.io/clone-from-dir";
/// Rebuilt too often: left for a person to look at.
pub const DEAD_LETTER: &str = "cocoonset.cocoonstack.io/dead-letter";
/// What we asked for in this pod, as JSON: drift is judged by it, whatever admission made of the pod (D-19, R20).
pub const TEMPLATE: &str = "cocoonset.cocoonstack.io/template";
/// The round of hibernation that a mark belongs to (R14).
pub const OPERATION: &str = "cocoonset.cocoonstack.io/operation";

/// On the set: rebuild counts of sub-agent slots.
pub const REBUILD_HISTORY: &str = "cocoonset.cocoonstack.io/rebuild-history";
/// On the set: rebuild counts of main agent and toolboxes (R21).
pub const REBUILD_HISTORY_ROLES: &str = "cocoonset.cocoonstack.io/rebuild-history-roles";
/// On the set: VM names whose tags teardown collects.
pub const DELETE_VM_NAMES: &str = "cocoonset.cocoonstack.io/delete-vm-names";
/// On the set: where a released main agent was.
pub const HIBERNATED_ON_NODE: &str = "cocoonset.cocoonstack.io/hibernated-on-node";
/// On the set: where the state of each VM lives (R13).
pub const VM_RECORDS: &str = "cocoonset.cocoonstack.io/vm-records";
/// On the set: this snapshot, by digest, may be thrown away (R17).
pub const DISCARD_SNAPSHOT: &str = "cocoonset.cocoonstack.io/discard-snapshot";
/// On the set: this node will not come back (R18).
pub const ACCEPT_NODE_LOSS: &str = "cocoonset.cocoonstack.io/accept-node-loss";
/// On set or request: hands off (R30).
pub const PAUSED: &str = "cocoonset.cocoonstack.io/paused";
/// Successors' key on the set: suspending since when. Read by none here, kept by all.
pub const SUSPENDING_SINCE: &str = "cocoonset.cocoonstack.io/suspending-since";
/// Successors' key on the set: where it was suspended.
pub const SUSPENDED_ON_NODE: &str = "cocoonset.cocoonstack.io/suspended-on-node";
/// Successors' key on the set: woken VMs whose tags are owed a delete.
pub const HIBERNATE_RECLAIM: &str = "cocoonset.cocoonstack.io/hibernate-reclaim";

/// Registry tag: the suspended memory image.
pub const TAG_HIBERNATE: &str = "hibernate";
/// Registry tag: the delete-time snapshot.
pub const TAG_LATEST: &str = "latest";

/// True for keys that are ours to read; others are not kept in memory.
pub fn is_ours(key: &str) -> bool {
    PREFIXES.iter().any(|prefix| key.starts_with(prefix))
}
