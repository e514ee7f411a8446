package reports

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/hotsku/hotsku/verify/rundir"
)

// none stands where there is no figure.
const none = "–"

// count writes n with thousands separators: 3,000,000.
func count(n int64) string {
	s := strconv.FormatInt(n, 10)
	neg := ""
	if s[0] == '-' {
		neg, s = "−", s[1:]
	}
	var b strings.Builder
	for i, r := range s {
		if i > 0 && (len(s)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(r)
	}
	return neg + b.String()
}

// decimal writes v with so many decimals and thousands separators.
func decimal(v float64, decimals int) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return none
	}
	s := strconv.FormatFloat(math.Abs(v), 'f', decimals, 64)
	whole, frac, _ := strings.Cut(s, ".")
	neg := ""
	if v < 0 && strings.Trim(s, "0.") != "" {
		neg = "−"
	}
	if n, err := strconv.ParseInt(whole, 10, 64); err == nil {
		whole = count(n)
	}
	if frac != "" {
		whole += "." + frac
	}
	return neg + whole
}

// figure writes v with about three significant digits and no unit: 0.042,
// 6.51, 18.4, 9,712.
func figure(v float64) string { return decimal(v, decimalsFor(v)) }

func decimalsFor(v float64) int {
	switch v = math.Abs(v); {
	case v == 0 || v >= 100:
		return 0
	case v >= 10:
		return 1
	case v >= 0.1:
		return 2
	default:
		return 3
	}
}

// ms writes a latency in milliseconds with its unit.
func ms(v float64) string { return figure(v) + " ms" }

// seconds writes a time given in milliseconds: "2.1 s".
func seconds(atMS int64) string { return decimal(float64(atMS)/1000, 2) + " s" }

// percent writes a ratio. It rounds down, so that 100 % means all of it and
// a miss never looks like its target.
func percent(ratio float64) string {
	if math.IsNaN(ratio) || math.IsInf(ratio, 0) {
		return none
	}
	if ratio == math.Trunc(ratio) && math.Abs(ratio) < 1e6 {
		return decimal(ratio*100, 0) + " %"
	}
	// One part in 1e9 absorbs the noise of ratio*100 in binary.
	v := math.Floor(ratio*100*1000+1e-6) / 1000
	s := strings.TrimRight(decimal(v, 3), "0")
	return strings.TrimSuffix(s, ".") + " %"
}

// share is part of whole as a percentage, none if there is no whole.
func share(part, whole int64) string {
	if whole <= 0 {
		return none
	}
	p := float64(part) / float64(whole)
	if part > 0 && p < 0.00001 {
		return "< 0.001 %"
	}
	return percent(p)
}

// shareAligned is share with three decimals always, for a column.
func shareAligned(part, whole int64) string {
	s := share(part, whole)
	digits, ok := strings.CutSuffix(s, " %")
	if !ok || digits[0] == '<' {
		return s
	}
	integer, frac, _ := strings.Cut(digits, ".")
	return integer + "." + (frac + "000")[:3] + " %"
}

// bytesSize writes a number of bytes in binary units.
func bytesSize(n int64) string {
	v, unit := float64(n), "B"
	for _, next := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if math.Abs(v) < 1024 {
			break
		}
		v, unit = v/1024, next
	}
	return figure(v) + " " + unit
}

func plural(n int, noun string) string { return plural64(int64(n), noun) }

func plural64(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return count(n) + " " + noun + "s"
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return "unknown time"
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}

// unit is how the figure an SLO's metric names is written.
type unit int

const (
	unitPlain unit = iota
	unitMS
	unitRatio
	unitPerS
)

func unitOf(metric string) unit {
	switch {
	case strings.Contains(metric, "_ms"):
		return unitMS
	case strings.HasSuffix(metric, "ratio"):
		return unitRatio
	case strings.HasSuffix(metric, "qps") || strings.Contains(metric, "per_s"):
		return unitPerS
	default:
		return unitPlain
	}
}

func (u unit) format(v float64, decimals int) string {
	switch u {
	case unitMS:
		return decimal(v, decimals) + " ms"
	case unitPerS:
		return decimal(v, decimals) + " /s"
	case unitRatio:
		return percent(v)
	default:
		return decimal(v, decimals)
	}
}

func sloTarget(s rundir.SLOResult) string {
	op := s.Op
	if op == ">=" {
		op = "≥"
	}
	return op + " " + unitOf(s.Metric).format(s.Target, trimmed(s.Target))
}

// sloWord says how an SLO came out, and as what class of result that counts.
func sloWord(s rundir.SLOResult) (word, class string) {
	switch {
	case s.NotMeasured:
		return notMeasured, "warn"
	case s.OK:
		return "met", "good"
	}
	return "missed", "bad"
}

// sloMeasured writes the measured figure with as many digits as it takes not
// to look like a target it differs from.
func sloMeasured(s rundir.SLOResult) string {
	if s.NotMeasured {
		return none
	}
	u := unitOf(s.Metric)
	target := u.format(s.Target, trimmed(s.Target))
	for d := decimalsFor(s.Measured); ; d++ {
		text := u.format(s.Measured, d)
		same := strings.TrimRight(u.format(s.Target, d), "0") == strings.TrimRight(text, "0") || text == target
		if !same || s.Measured == s.Target || d >= 9 {
			return text
		}
	}
}

// trimmed is the least number of decimals that show v exactly, up to 6.
func trimmed(v float64) int {
	for d := range 6 {
		p := math.Pow10(d)
		if math.Round(v*p)/p == v {
			return d
		}
	}
	return 6
}
