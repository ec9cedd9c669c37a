//! Connections to PostgreSQL: one pool for each ProviderConfig, bounded over all databases of its server.
//!
//! Connections to the default database are kept. Those to another one are kept for [`KEPT_FOR`], enough for the statements of
//! a reconcile, because an open connection keeps its database from being dropped: the server waits five seconds for others to
//! end theirs before it refuses. A pool is replaced when its credentials change, dropped with its ProviderConfig, and a
//! connection that broke is not used again.

use super::config::Target;
use super::idle::Idle;
use super::statement::{failed, words};
use super::tls::{SslMode, Tls};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, NoTls, Row};
use transom_provider::{ConfigReference, Error, ErrorContext, Resource, Result};

/// How many connections a ProviderConfig has at most.
const MAX_CONNECTIONS: usize = 10;
/// How long a server may take until a connection can be used.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a connection to another than the default database is kept.
const KEPT_FOR: Duration = Duration::from_secs(1);

/// The pools, by their ProviderConfig.
#[derive(Default)]
pub(super) struct Pools(Mutex<HashMap<ConfigReference, Arc<Pool>>>);

struct Pool {
    target: Target,
    tls: Tls,
    idle: Mutex<Idle<Client>>,
    turns: Arc<Semaphore>,
}

impl Pools {
    /// A session of a managed resource in a database, or in the default one. Connects when it is first used.
    pub(super) async fn session<P>(
        &self,
        resource: &Resource<'_, P>,
        database: Option<&str>,
    ) -> Result<Session> {
        let target = Target::of(resource).await?;
        let config =
            resource.config.map(ConfigReference::to).ok_or_else(|| Error::permanent("no ProviderConfig"))?;
        let pool = self.pool(config, target)?;
        let database = database.filter(|name| !name.is_empty()).map(str::to_owned);
        let database = database.unwrap_or_else(|| pool.target.default_database.clone());
        Ok(Session { pool, database })
    }

    /// Forgets a ProviderConfig that is gone. Its connections are closed when nothing uses them.
    pub(super) fn forget(&self, config: &ConfigReference) {
        self.lock().remove(config);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ConfigReference, Arc<Pool>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pool(&self, config: ConfigReference, target: Target) -> Result<Arc<Pool>> {
        let mut pools = self.lock();
        if let Some(pool) = pools.get(&config).filter(|pool| pool.target == target) {
            return Ok(pool.clone());
        }
        let tls = Tls::new(target.mode, &target.certificates)?;
        let turns = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let pool = Arc::new(Pool { target, tls, idle: Mutex::default(), turns });
        pools.insert(config, pool.clone());
        Ok(pool)
    }
}

impl Pool {
    fn idle(&self) -> MutexGuard<'_, Idle<Client>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection that was kept; otherwise there is room for another one.
    fn take(&self, database: &str) -> Option<Client> {
        self.idle().take(database, MAX_CONNECTIONS, |client| !client.is_closed())
    }

    /// Ends the use of a connection. Without one, because it was not made or cannot be used again, nothing is kept.
    fn put_back(self: &Arc<Self>, database: &str, client: Option<Client>) {
        let client = client.filter(|client| !client.is_closed());
        let is_short_lived = client.is_some() && database != self.target.default_database;
        let until = is_short_lived.then(|| Instant::now() + KEPT_FOR);
        let mut idle = self.idle();
        idle.put_back(database, client, until);
        if is_short_lived && !std::mem::replace(&mut idle.is_swept, true) {
            sweep(self);
        }
    }

    async fn connect(&self, database: &str) -> Result<Client, tokio_postgres::Error> {
        let Target { endpoint, port, username, password, mode, .. } = &self.target;
        let mut config = Config::new();
        config
            .host(endpoint)
            .port(port.parse().unwrap_or(5432))
            .user(username)
            .password(password)
            .dbname(database)
            .application_name("provider-sql");
        if *mode == SslMode::Disable {
            config.ssl_mode(tokio_postgres::config::SslMode::Disable);
            let (client, connection) = config.connect(NoTls).await?;
            drive(connection);
            return Ok(client);
        }
        config.ssl_mode(tokio_postgres::config::SslMode::Require);
        let (client, connection) = config.connect(self.tls.clone()).await?;
        drive(connection);
        Ok(client)
    }
}

/// Closes connections that are kept for a time, until there are none, or no pool.
fn sweep(pool: &Arc<Pool>) {
    let pool = Arc::downgrade(pool);
    tokio::spawn(async move {
        while let Some(pool) = pool.upgrade() {
            let next = {
                let mut idle = pool.idle();
                let next = idle.expire(Instant::now());
                idle.is_swept = next.is_some();
                next
            };
            drop(pool);
            let Some(next) = next else { return };
            tokio::time::sleep_until(next).await;
        }
    });
}

/// Runs a connection until its client is dropped.
fn drive(connection: impl Future<Output = Result<(), tokio_postgres::Error>> + Send + 'static) {
    tokio::spawn(async move {
        if let Err(e) = connection.await {
            tracing::debug!(error = words(&e), "a connection to PostgreSQL ended");
        }
    });
}

/// What a managed resource does in one database.
pub(super) struct Session {
    pool: Arc<Pool>,
    database: String,
}

/// What a query found; the database itself may not exist.
pub(super) enum Answer {
    Rows(Vec<Row>),
    NoDatabase,
}

impl Answer {
    /// The first row; none if there is none, or no database.
    pub(super) fn first_row(self) -> Option<Row> {
        match self {
            Self::Rows(rows) => rows.into_iter().next(),
            Self::NoDatabase => None,
        }
    }
}

/// A connection that is used.
struct Connection {
    client: Option<Client>,
    /// Whether nothing is left of what was done with it.
    is_clean: bool,
    pool: Arc<Pool>,
    database: String,
    _turn: OwnedSemaphorePermit,
}

impl Connection {
    fn client(&mut self) -> Result<&mut Client, Problem> {
        self.client.as_mut().ok_or(Problem::Closed)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let client = self.client.take().filter(|_| self.is_clean);
        self.pool.put_back(&self.database, client);
    }
}

impl Session {
    /// Where the server is.
    pub(super) fn target(&self) -> &Target {
        &self.pool.target
    }

    async fn connection(&self) -> Result<Connection, Problem> {
        let turn = self.pool.turns.clone().acquire_owned().await.map_err(|_| Problem::Closed)?;
        let (pool, database) = (self.pool.clone(), self.database.clone());
        let client = pool.take(&database);
        let mut connection = Connection { client, is_clean: true, pool, database, _turn: turn };
        if connection.client.is_none() {
            // A server may accept a connection and say nothing.
            let connected = timeout(CONNECT_TIMEOUT, self.pool.connect(&self.database)).await;
            connection.client = Some(connected.map_err(|_| Problem::Silent)?.map_err(Problem::Server)?);
        }
        // What is given up half-way must not be continued by others.
        connection.is_clean = false;
        Ok(connection)
    }

    /// Closes the connections to a database that is to be dropped, as far as no other managed resource uses them now.
    pub(super) fn leave(&self, database: &str) {
        self.pool.idle().close(database);
    }

    /// The rows of a query.
    pub(super) async fn query(
        &self,
        attempted: &str,
        sql: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Answer> {
        let outcome = async {
            let mut connection = self.connection().await?;
            let rows = connection.client()?.query(sql, values).await.map_err(Problem::Server);
            self.return_connection(connection, rows)
        };
        match outcome.await {
            Ok(rows) => Ok(Answer::Rows(rows)),
            Err(Problem::Server(e)) if e.code() == Some(&SqlState::INVALID_CATALOG_NAME) => {
                Ok(Answer::NoDatabase)
            }
            Err(problem) => Err(problem.error(attempted)),
        }
    }

    /// Runs one statement, outside of a transaction.
    pub(super) async fn execute(&self, attempted: &str, sql: &str) -> Result<()> {
        let outcome = async {
            let mut connection = self.connection().await?;
            let done = connection.client()?.batch_execute(sql).await.map_err(Problem::Server);
            self.return_connection(connection, done)
        };
        outcome.await.map_err(|problem: Problem| problem.error(attempted))
    }

    /// Runs statements in one transaction.
    pub(super) async fn transaction(&self, attempted: &str, statements: &[String]) -> Result<()> {
        let outcome = async {
            let mut connection = self.connection().await?;
            let client = connection.client()?;
            let done = async {
                let transaction = client.transaction().await?;
                for statement in statements {
                    transaction.batch_execute(statement).await?;
                }
                transaction.commit().await
            };
            let done = done.await.map_err(Problem::Server);
            self.return_connection(connection, done)
        };
        outcome.await.map_err(|problem: Problem| problem.error(attempted))
    }

    fn return_connection<T>(
        &self,
        mut connection: Connection,
        outcome: Result<T, Problem>,
    ) -> Result<T, Problem> {
        let broken = matches!(&outcome, Err(Problem::Server(e)) if e.as_db_error().is_none());
        if broken {
            // The server restarted, or cannot be reached: the others are of no use either.
            self.pool.idle().clear();
        } else {
            connection.is_clean = true;
        }
        outcome
    }

    /// The version of the server, such as 150003.
    pub(super) async fn server_version(&self) -> Result<i32> {
        let attempted = "cannot get server version";
        let sql = "SELECT current_setting('server_version_num')::int";
        match self.query(attempted, sql, &[]).await? {
            Answer::Rows(rows) => {
                let first = rows.first().ok_or_else(|| Error::domain("no row")).context(attempted)?;
                first.try_get(0).map_err(|e| failed(attempted, &e))
            }
            Answer::NoDatabase => Ok(0),
        }
    }
}

enum Problem {
    Server(tokio_postgres::Error),
    Silent,
    Closed,
}

impl Problem {
    fn error(self, attempted: &str) -> Error {
        match self {
            Self::Server(e) => failed(attempted, &e),
            Self::Silent => {
                let waited = CONNECT_TIMEOUT.as_secs();
                let silent = Error::domain(format!("the server did not respond within {waited} s"));
                Error::During { context: attempted.to_owned(), source: Box::new(silent) }
            }
            Self::Closed => Error::domain("the pool of connections is closed"),
        }
    }
}
