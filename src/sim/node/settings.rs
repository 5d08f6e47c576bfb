//! How long things take on a node, what goes wrong there, and where releases of the node agent differ.

use std::time::Duration;

/// One step of the node agent's work that takes time and can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// Looks for a leftover `hibernate` tag (node-agent.md 2, 5a): at once, so that it can only fail.
    Evidence,
    /// Fetches image or snapshot to the node.
    Pull,
    /// Takes the snapshot of a running VM that its forks are cloned from.
    ForkSource,
    /// Boots from an image.
    Boot,
    /// Clones from a snapshot.
    Clone,
    /// Fixes the guest up after a clone: Windows.
    PostClone,
    /// Waits for an address.
    IpWait,
    /// Starts a guest again that has stopped.
    Restart,
    /// Saves a snapshot.
    Save,
    /// Pushes it to the registry.
    Push,
    /// Stops and removes the VM.
    Remove,
}

/// How long each step takes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Timings {
    pub pull: Duration,
    pub fork_source: Duration,
    pub boot: Duration,
    pub clone: Duration,
    pub post_clone: Duration,
    pub ip_wait: Duration,
    pub restart: Duration,
    pub save: Duration,
    pub push: Duration,
    pub remove: Duration,
}

impl Default for Timings {
    fn default() -> Self {
        Self {
            pull: Duration::ZERO,
            fork_source: Duration::from_secs(2),
            boot: Duration::from_secs(3),
            clone: Duration::from_secs(3),
            post_clone: Duration::from_secs(6),
            ip_wait: Duration::from_millis(600),
            restart: Duration::from_secs(3),
            save: Duration::from_secs(2),
            push: Duration::from_secs(8),
            remove: Duration::from_secs(1),
        }
    }
}

impl Timings {
    /// How long this step takes.
    pub const fn of(&self, step: Step) -> Duration {
        match step {
            Step::Evidence => Duration::ZERO,
            Step::Pull => self.pull,
            Step::ForkSource => self.fork_source,
            Step::Boot => self.boot,
            Step::Clone => self.clone,
            Step::PostClone => self.post_clone,
            Step::IpWait => self.ip_wait,
            Step::Restart => self.restart,
            Step::Save => self.save,
            Step::Push => self.push,
            Step::Remove => self.remove,
        }
    }
}

/// What becomes of VMs that no pod stands for when an agent starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strays {
    /// They are removed: the default.
    Destroy,
    /// They stay.
    Keep,
}

/// Durations, and how this release of the agent behaves.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// How long steps take where nothing else is said.
    pub timings: Timings,
    /// All durations of steps are divided by this.
    pub speed: f64,
    /// Whether a leftover `hibernate` tag is looked for before a fresh create: not so in old releases.
    pub evidence_check: bool,
    /// Whether an unmanaged pod's delete is only forgotten: the newest releases.
    pub forgets_unmanaged: bool,
    /// VMs without pods at the agent's start.
    pub strays: Strays,
    /// How often a create or a removal that fails is tried in all.
    pub create_tries: u32,
    /// The pause after the first such failure; it doubles up to five minutes.
    pub first_pause: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            timings: Timings::default(),
            speed: 1.0,
            evidence_check: true,
            forgets_unmanaged: false,
            strays: Strays::Destroy,
            create_tries: 20,
            first_pause: Duration::from_secs(1),
        }
    }
}

impl Settings {
    /// The duration under the speed set.
    pub fn scaled(&self, duration: Duration) -> Duration {
        let usable = self.speed.is_finite() && self.speed > 0.0;
        if usable { duration.div_f64(self.speed.clamp(1e-6, 1e9)) } else { duration }
    }
}

/// What a step does otherwise than usual.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It fails, with these words, after its usual time.
    Fails(String),
    /// It takes this long.
    Takes(Duration),
    /// It never ends, until the injection is taken away.
    Hangs,
}

/// Something that goes otherwise than usual on the nodes. An absent part fits everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Injection {
    /// On which node.
    pub node: Option<String>,
    /// For which pod: its name, or `namespace/name`.
    pub pod: Option<String>,
    /// For which VM.
    pub vm: Option<String>,
    /// Which step.
    pub step: Step,
    /// How.
    pub effect: Effect,
    /// How often still; none for always.
    pub remaining: Option<u32>,
}

impl Injection {
    /// For every pod on every node, always.
    pub fn new(step: Step, effect: Effect) -> Self {
        Self { node: None, pod: None, vm: None, step, effect, remaining: None }
    }
    /// Only on this node.
    #[must_use]
    pub fn on_node(mut self, node: &str) -> Self {
        self.node = Some(node.to_owned());
        self
    }
    /// Only for this pod: its name, or `namespace/name`.
    #[must_use]
    pub fn for_pod(mut self, pod: &str) -> Self {
        self.pod = Some(pod.to_owned());
        self
    }
    /// Only for this VM.
    #[must_use]
    pub fn for_vm(mut self, vm: &str) -> Self {
        self.vm = Some(vm.to_owned());
        self
    }
    /// Only so many times.
    #[must_use]
    pub fn times(mut self, count: u32) -> Self {
        self.remaining = Some(count);
        self
    }
    pub(super) fn fits(&self, pod: &super::Pod, step: Step) -> bool {
        let same = |want: &Option<String>, have: &str| want.as_deref().is_none_or(|want| want == have);
        self.step == step
            && self.remaining != Some(0)
            && same(&self.node, &pod.node)
            && same(&self.vm, &pod.vm)
            && self.pod.as_deref().is_none_or(|want| want == pod.name || want == pod.place())
    }
    pub(super) fn used(&mut self) {
        self.remaining = self.remaining.map(|left| left.saturating_sub(1));
    }
}
