/* zero [SECONDS] - reads /dev/zero in read_zeros: almost all of its time is the kernel's. */
#include <fcntl.h>
#include <unistd.h>

#include "work.h"

static char bytes[1 << 20];

static NOINLINE int read_zeros(int fd)
{
	return read(fd, bytes, sizeof(bytes)) == sizeof(bytes);
}

int main(int argc, char **argv)
{
	double seconds = seconds_argument(argc, argv, 1, 1.0);
	int fd = open("/dev/zero", O_RDONLY);

	while (seconds_worked() < seconds)
		if (!read_zeros(fd))
			return 1;
	return 0;
}
