package guest
import ("testing";"time";"syscall")
func cpu() time.Duration { var r syscall.Rusage; syscall.Getrusage(0,&r); return time.Duration(r.Utime.Nano()+r.Stime.Nano()) }
func TestZZ(t *testing.T){
 p := load(t, benchGuest(t,"c"), Options{Limits: endlessLimits(500*time.Millisecond)})
 for range 6 { for _, b := range []string{"p","r"} { c:=cpu(); s:=time.Now(); r := attemptOf(t,p,b); t.Log(b, time.Since(s), cpu()-c, r.Fuel, r.Settlement.FailReason, r.Settlement.FailText) } }
}
