package seckill

// Ready is the one JSON line a role prints on standard output when it is
// ready to work (contracts.md section 6). Listen and Admin are host:port,
// empty where the role has none.
type Ready struct {
	Role   string `json:"role"`
	PID    int    `json:"pid"`
	Listen string `json:"listen"`
	Admin  string `json:"admin"`
}
