package main

import (
	"context"
	"database/sql"
	"errors"
	"net"
	"net/url"
	"strings"

	client "github.com/go-sql-driver/mysql"

	"github.com/shedbolt/shedbolt/providers/mysql"
)

func openMySQL(_ context.Context, o storeOptions) (*openStore, error) {
	config, fencing, err := mysqlConfig(o.url)
	if err != nil {
		return nil, usageError{"--store", redact(err.Error(), o.url)}
	}
	connector, err := client.NewConnector(config)
	if err != nil {
		return nil, usageError{"--store", redact(err.Error(), o.url)}
	}
	db := sql.OpenDB(connector)
	// A command may run for hours: no connection is kept for its end.
	db.SetMaxOpenConns(2)
	db.SetConnMaxIdleTime(idleTime)
	var opts []mysql.Option
	if fencing {
		opts = append(opts, mysql.WithFencing())
	}
	if o.table != "" {
		opts = append(opts, mysql.WithTable(o.tableParts()...))
	}
	p, err := mysql.New(db, opts...)
	if err != nil {
		return nil, errors.Join(usageError{"--table", err.Error()}, db.Close())
	}
	return &openStore{provider: p, close: func() { _ = db.Close() }}, nil
}

// mysqlConfig reads a URL, which is how the other stores are named; the driver
// itself has a form of its own. Its parameters are the driver's, "socket", and
// "fencing", which is the provider's.
func mysqlConfig(storeURL string) (config *client.Config, fencing bool, err error) {
	u, err := url.Parse(storeURL)
	if err != nil {
		return nil, false, errors.New("it is not a valid URL") // the error quotes all of it
	}
	database := strings.TrimPrefix(u.Path, "/")
	if database == "" || strings.Contains(database, "/") {
		return nil, false, errors.New("write mysql://USER@HOST/DATABASE")
	}
	query := u.Query()
	if fencing, err = fencingParam(query); err != nil {
		return nil, false, err
	}
	socket := query.Get("socket")
	query.Del("socket")
	if config, err = client.ParseDSN("/?" + query.Encode()); err != nil {
		return nil, false, err
	}
	config.User, config.DBName = u.User.Username(), database
	config.Passwd, _ = u.User.Password()
	if config.Net, config.Addr = "unix", socket; socket == "" {
		port := u.Port()
		if port == "" {
			port = "3306"
		}
		config.Net, config.Addr = "tcp", net.JoinHostPort(u.Hostname(), port)
	}
	// These connections run the provider's statements alone: a claim is one trip.
	config.MultiStatements = true
	// What it would write to standard error is in the errors that it returns.
	config.Logger = &client.NopLogger{}
	return config, fencing, nil
}

// missingMySQLTable reports whether the server says that there is no table.
func missingMySQLTable(err error) bool {
	serverErr, ok := errors.AsType[*client.MySQLError](err)
	return ok && serverErr.Number == 1146
}
