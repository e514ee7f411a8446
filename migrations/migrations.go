// Package migrations embeds the schema of the order database as goose
// migrations. PostgreSQL decides every end of a reservation; what is unique
// here is the last line of defence (specification 6.7, 8.4, 15.4).
package migrations

import "embed"

// FS holds the migrations, NNNNN_name.sql, applied in order by `seckill migrate`.
//
//go:embed *.sql
var FS embed.FS
