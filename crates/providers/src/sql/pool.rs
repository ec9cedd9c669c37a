//! Connections to PostgreSQL: one pool for each ProviderConfig.
//!
//! Only connections to the default database are kept: an open connection to another one would keep it from being dropped. A
//! pool is replaced when its credentials change, and a connection that broke is not used again.

use super::config::Target;
use super::statement::{failed, words};
use super::tls::{SslMode, Tls};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, NoTls, Row};
use transom_object::meta;
use transom_provider::{Error, ErrorContext, Resource, Result};

/// How many connections a ProviderConfig has at most.
const MAX_CONNECTIONS: usize = 10;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The pools, by the uid of their ProviderConfig.
#[derive(Default)]
pub(super) struct Pools(Mutex<HashMap<String, Arc<Pool>>>);

struct Pool {
    target: Target,
    tls: Tls,
    idle: Mutex<Vec<Client>>,
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
        let config = resource.config.map(meta::uid).unwrap_or_default();
        let pool = self.pool(config, target)?;
        let database = database.filter(|name| !name.is_empty()).map(str::to_owned);
        let database = database.unwrap_or_else(|| pool.target.default_database.clone());
        Ok(Session { pool, database })
    }

    fn pool(&self, config: &str, target: Target) -> Result<Arc<Pool>> {
        let mut pools = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pool) = pools.get(config).filter(|pool| pool.target == target) {
            return Ok(pool.clone());
        }
        let tls = Tls::new(target.mode, &target.certificates)?;
        let turns = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let pool = Arc::new(Pool { target, tls, idle: Mutex::default(), turns });
        pools.insert(config.to_owned(), pool.clone());
        Ok(pool)
    }
}

impl Pool {
    async fn connect(&self, database: &str) -> Result<Client, tokio_postgres::Error> {
        let Target { endpoint, port, username, password, mode, .. } = &self.target;
        let mut config = Config::new();
        config
            .host(endpoint)
            .port(port.parse().unwrap_or(5432))
            .user(username)
            .password(password)
            .dbname(database)
            .application_name("provider-sql")
            .connect_timeout(CONNECT_TIMEOUT);
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
    client: Client,
    _turn: OwnedSemaphorePermit,
}

impl Session {
    /// Where the server is.
    pub(super) fn target(&self) -> &Target {
        &self.pool.target
    }

    async fn connection(&self) -> Result<Connection, Problem> {
        let turn = self.pool.turns.clone().acquire_owned().await.map_err(|_| Problem::Closed)?;
        let is_default = self.database == self.pool.target.default_database;
        let kept = || {
            let mut idle = self.pool.idle.lock().unwrap_or_else(PoisonError::into_inner);
            std::iter::from_fn(|| idle.pop()).find(|client| !client.is_closed())
        };
        let client = match is_default.then(kept).flatten() {
            Some(client) => client,
            None => self.pool.connect(&self.database).await.map_err(Problem::Server)?,
        };
        Ok(Connection { client, _turn: turn })
    }

    /// Keeps a connection that can be used again.
    fn keep(&self, connection: Connection) {
        if self.database == self.pool.target.default_database && !connection.client.is_closed() {
            self.pool.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection.client);
        }
    }

    /// The rows of a query.
    pub(super) async fn query(
        &self,
        attempted: &str,
        sql: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Answer> {
        let outcome = async {
            let connection = self.connection().await?;
            let rows = connection.client.query(sql, values).await.map_err(Problem::Server);
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
            let connection = self.connection().await?;
            let done = connection.client.batch_execute(sql).await.map_err(Problem::Server);
            self.return_connection(connection, done)
        };
        outcome.await.map_err(|problem: Problem| problem.error(attempted))
    }

    /// Runs statements in one transaction.
    pub(super) async fn transaction(&self, attempted: &str, statements: &[String]) -> Result<()> {
        let outcome = async {
            let mut connection = self.connection().await?;
            let done = async {
                let transaction = connection.client.transaction().await?;
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
        connection: Connection,
        outcome: Result<T, Problem>,
    ) -> Result<T, Problem> {
        let broken = matches!(&outcome, Err(Problem::Server(e)) if e.as_db_error().is_none());
        if broken {
            // The server restarted, or cannot be reached: the others are of no use either.
            self.pool.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
        } else {
            self.keep(connection);
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
    Closed,
}

impl Problem {
    fn error(self, attempted: &str) -> Error {
        match self {
            Self::Server(e) => failed(attempted, &e),
            Self::Closed => Error::domain("the pool of connections is closed"),
        }
    }
}
