package backends

import (
	"context"
	"crypto/rand"
	"database/sql"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/testcontainers/testcontainers-go"
)

const (
	mysqlModule   = "github.com/go-sql-driver/mysql"
	mysqlDatabase = "shedbolt"
	mysqlData     = "/var/lib/mysql" // the images' own volume
)

// mysqlImages are the images of one version of MySQL or MariaDB.
type mysqlImages struct{ official, lab, noLab string }

var (
	mysql84     = mysqlImages{official: "mysql:8.4", noLab: "Debian has no package of MySQL 8"}
	mysql97     = mysqlImages{official: "mysql:9", lab: "mysql:9.7"}
	mariadb1011 = mysqlImages{official: "mariadb:10.11", lab: "mariadb:10.11"}
	mariadb118  = mysqlImages{official: "mariadb:11.8", lab: "mariadb:11.8"}
)

// In Prague clocks go from 02:00 to 03:00 at 01:00 UTC on that day. A server begins
// shortly before that change, or before the hour of UTC that no clock there shows,
// which a TIMESTAMP column then refuses.
const (
	springChange = "@2026-03-29 00:59:30"
	springGap    = "@2026-03-29 01:59:30"
)

func mysqlBackend(name string, images mysqlImages, clock string) Backend {
	return Backend{
		Name: name, Provider: "mysql", Known: "mysql", Client: mysqlModule, Test: "TestMySQL",
		Command:  "^TestMySQL",
		Variants: []string{"plain", "fencing"},
		Server: &Recipe{
			Official: images.official, Lab: images.lab, NoLab: images.noLab, Clock: clock,
			start:   startMySQL,
			version: mysqlVersion,
			now:     mysqlNow,
		},
	}
}

// nightOfChange limits a backend to the variant whose sessions are in a zone with
// daylight saving time.
func nightOfChange(b Backend) Backend {
	b.Variants = []string{"zone_of_daylight_saving"}
	return brief(b)
}

// startMySQL starts a server that is quick rather than durable. Its user is root,
// because tests make databases and users.
func startMySQL(s *starting) (Address, error) {
	password := rand.Text()
	env := map[string]string{}
	for _, prefix := range []string{"MYSQL_", "MARIADB_"} {
		env[prefix+"ROOT_PASSWORD"], env[prefix+"DATABASE"] = password, mysqlDatabase
	}
	c, endpoint, err := s.run(s.image, "3306",
		testcontainers.WithEnv(env),
		testcontainers.WithTmpfs(map[string]string{mysqlData: "rw"}),
		testcontainers.WithCmd("--max-connections=400", "--innodb-flush-log-at-trx-commit=0", "--sync-binlog=0"),
	)
	if err != nil {
		return Address{}, err
	}
	config := mysql.NewConfig()
	config.User, config.Passwd = "root", password
	config.Net, config.Addr, config.DBName = "tcp", endpoint, mysqlDatabase
	a := Address{DSN: config.FormatDSN()}
	return a, s.await(c, func(ctx context.Context) error {
		_, err := mysqlAsk(ctx, a, "SELECT 1")
		return err
	})
}

// mysqlAsk asks for one value.
func mysqlAsk(ctx context.Context, a Address, question string) (answer string, err error) {
	config, err := mysql.ParseDSN(a.DSN)
	if err != nil {
		return "", err
	}
	config.Logger = &mysql.NopLogger{} // it tells of each attempt on a server that starts
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return "", err
	}
	db := sql.OpenDB(connector)
	defer func() { _ = db.Close() }()
	err = db.QueryRowContext(ctx, question).Scan(&answer)
	return answer, err
}

func mysqlVersion(a Address) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), askLimit)
	defer cancel()
	version, err := mysqlAsk(ctx, a, "SELECT VERSION()")
	if err != nil {
		return "", err
	}
	product := "MySQL"
	if strings.Contains(version, "MariaDB") {
		product = "MariaDB"
	}
	number, _, _ := strings.Cut(version, "-")
	return product + " " + number, nil
}

func mysqlNow(ctx context.Context, a Address) (time.Time, error) {
	now, err := mysqlAsk(ctx, a, "SELECT CAST(UTC_TIMESTAMP(6) AS CHAR)")
	if err != nil {
		return time.Time{}, err
	}
	return time.Parse("2006-01-02 15:04:05.000000", now)
}
