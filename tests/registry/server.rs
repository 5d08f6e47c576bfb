//! A small registry on a port of this machine. What it says is written byte by byte, so that it can say anything.

use cocoon_operator::shell::clock::Clock;
use cocoon_operator::shell::reference::Base;
use cocoon_operator::shell::registry::Registry;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};

/// One request, as far as these tests look at it.
#[derive(Clone, Debug)]
pub struct Seen {
    pub method: String,
    /// Path and query.
    pub target: String,
    pub head: String,
}

impl Seen {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let named = |line: &&str| line.split_once(':').is_some_and(|(key, _)| key.eq_ignore_ascii_case(name));
        self.head.lines().find(named).and_then(|line| line.split_once(':')).map(|(_, value)| value.trim())
    }
    /// Method, path and how it shows itself.
    pub fn told(&self) -> String {
        format!("{} {} {}", self.method, self.target, self.header("authorization").unwrap_or("-"))
    }
}

/// A part of an answer.
pub enum Piece {
    Bytes(Vec<u8>),
    Pause(Duration),
}

type Answers = Arc<dyn Fn(&Seen) -> Vec<Piece> + Send + Sync>;

pub struct Server {
    pub address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    /// Listens, and answers every request so.
    pub async fn new(answers: impl Fn(&Seen) -> Vec<Piece> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (seen, answers): (Arc<Mutex<Vec<Seen>>>, Answers) = (Arc::default(), Arc::new(answers));
        let server = Self { address, seen: Arc::clone(&seen) };
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(talk(stream, Arc::clone(&answers), Arc::clone(&seen)));
            }
        });
        server
    }

    /// The operator's client of this server, with short deadlines.
    pub fn registry(&self) -> Registry {
        self.registry_on(Clock::real())
    }

    pub fn registry_on(&self, clock: Clock) -> Registry {
        let base = Base::parse(&format!("{}/p", self.address), None).expect("a base");
        Registry::http(base, clock).expect("loopback needs nothing").with_deadline(Duration::from_millis(500))
    }

    /// What was asked, in order.
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().expect("no panic").clone()
    }

    pub fn told(&self) -> Vec<String> {
        self.seen().iter().map(Seen::told).collect()
    }
}

async fn talk(stream: TcpStream, answers: Answers, seen: Arc<Mutex<Vec<Seen>>>) {
    let mut head = Vec::new();
    let mut chunk = [0_u8; 4096];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        match read(&stream, &mut chunk).await {
            Ok(0) | Err(_) => return,
            Ok(read) => head.extend_from_slice(&chunk[..read]),
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let mut words = head.split(' ').map(str::to_owned);
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let request = Seen { method, target, head };
    let pieces = answers(&request);
    seen.lock().expect("no panic").push(request);
    for piece in pieces {
        match piece {
            Piece::Pause(time) => tokio::time::sleep(time).await,
            Piece::Bytes(bytes) => {
                if write(&stream, &bytes).await.is_err() {
                    return;
                }
            }
        }
    }
}

async fn read(stream: &TcpStream, chunk: &mut [u8]) -> std::io::Result<usize> {
    loop {
        stream.readable().await?;
        match stream.try_read(chunk) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            done => return done,
        }
    }
}

async fn write(stream: &TcpStream, mut bytes: &[u8]) -> std::io::Result<()> {
    while !bytes.is_empty() {
        stream.writable().await?;
        match stream.try_write(bytes) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            written => bytes = &bytes[written?..],
        }
    }
    Ok(())
}

/// A whole answer. The length is that of the body, unless a header says otherwise.
pub fn reply(status: u16, headers: &[(&str, &str)], body: &str) -> Vec<Piece> {
    let mut text = format!("HTTP/1.1 {status} X\r\nConnection: close\r\n");
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-length")) {
        text.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    vec![Piece::Bytes(format!("{text}\r\n{body}").into_bytes())]
}
