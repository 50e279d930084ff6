/* Moves the time of day of the process that it is preloaded into by as many
 * nanoseconds as the file named in PARLEY_TEST_CLOCK holds (8 bytes, mapped). The
 * monotonic clock stays, as it does when somebody sets a clock. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *moved;

__attribute__((constructor)) static void map(void) {
	const char *file = getenv("PARLEY_TEST_CLOCK");
	int fd = file ? open(file, O_RDONLY) : -1;
	void *at = fd < 0 ? MAP_FAILED : mmap(0, sizeof *moved, PROT_READ, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED) abort();
	moved = at;
	close(fd);
}

int clock_gettime(clockid_t id, struct timespec *ts) {
	int err = syscall(SYS_clock_gettime, id, ts);
	if (err || !moved || (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE)) return err;
	int64_t ns = ts->tv_sec * 1000000000LL + ts->tv_nsec + *moved;
	ts->tv_sec = ns / 1000000000;
	ts->tv_nsec = ns % 1000000000;
	return 0;
}

int gettimeofday(struct timeval *restrict tv, void *restrict tz) {
	struct timespec ts;
	(void)tz;
	if (clock_gettime(CLOCK_REALTIME, &ts)) return -1;
	tv->tv_sec = ts.tv_sec;
	tv->tv_usec = ts.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *t) {
	struct timespec ts;
	clock_gettime(CLOCK_REALTIME, &ts);
	if (t) *t = ts.tv_sec;
	return ts.tv_sec;
}
