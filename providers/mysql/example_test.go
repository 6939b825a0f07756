package mysql_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/shedbolt/shedbolt/core"
	"github.com/shedbolt/shedbolt/providers/mysql"
)

// A job of which one replica at a time runs.
func Example() {
	db, err := sql.Open("mysql", "app@tcp(localhost:3306)/app")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = db.Close() }()

	provider, err := mysql.New(db)
	if err != nil {
		log.Fatal(err)
	}
	locker, err := core.New(provider)
	if err != nil {
		log.Fatal(err)
	}
	report := core.Lock{Name: "report", AtMostFor: 30 * time.Minute, AtLeastFor: time.Minute}
	result, err := locker.Run(context.Background(), report, func(ctx context.Context) error {
		return nil // the work
	})
	fmt.Println(result.Outcome, err)
}

// A pool for locks alone, on which MySQL needs one round trip for each call.
func ExampleNew() {
	config := driver.NewConfig()
	config.Net, config.Addr, config.User, config.DBName = "tcp", "localhost:3306", "app", "app"
	config.MultiStatements = true
	connector, err := driver.NewConnector(config)
	if err != nil {
		log.Fatal(err)
	}
	db := sql.OpenDB(connector)
	defer func() { _ = db.Close() }()
	provider, err := mysql.New(db, mysql.WithTable("jobs", "shedlock"))
	fmt.Println(provider != nil, err)
	// Output: true <nil>
}

// The DDL, for a migration.
func ExampleProvider_Schema() {
	db, err := sql.Open("mysql", "app@tcp(localhost:3306)/app")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	provider, err := mysql.New(db)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(provider.Schema())
	// Output:
	// CREATE TABLE IF NOT EXISTS `shedlock` (
	// 	`name` VARCHAR(64) CHARACTER SET utf8mb4 COLLATE /*!80017 utf8mb4_0900_bin *//*M! utf8mb4_nopad_bin */ NOT NULL,
	// 	`lock_until` DATETIME(3) NOT NULL,
	// 	`locked_at` DATETIME(3) NOT NULL,
	// 	`locked_by` VARCHAR(255) CHARACTER SET utf8mb4 NOT NULL,
	// 	`fence` BIGINT NOT NULL DEFAULT 0,
	// 	PRIMARY KEY (`name`)
	// ) ENGINE = InnoDB;
}

// A table whose columns have names of their own.
func ExampleWithColumns() {
	db, err := sql.Open("mysql", "app@tcp(localhost:3306)/app")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	columns := mysql.DefaultColumns()
	columns.Name, columns.LockedBy = "job", "host"
	provider, err := mysql.New(db, mysql.WithTable(mysql.DefaultTable), mysql.WithColumns(columns))
	fmt.Println(provider != nil, err)
	// Output: true <nil>
}

// Fencing numbers, for a resource that refuses older ones.
func ExampleWithFencing() {
	db, err := sql.Open("mysql", "app@tcp(localhost:3306)/app")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	provider, err := mysql.New(db, mysql.WithFencing())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(provider.Capabilities().Set)
	// Output: extend,inspect,fence,holder,times,persistent
}

// At a service's start, if no migration makes the table. All replicas may do so
// at once.
func ExampleProvider_EnsureSchema() {
	db, err := sql.Open("mysql", "app@tcp(localhost:3306)/app")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	provider, err := mysql.New(db)
	if err != nil {
		log.Fatal(err)
	}
	if err := provider.EnsureSchema(context.Background()); err != nil {
		log.Fatal(err)
	}
}
