/* throw.cc - exceptions thrown through frames with destructors, caught, and thrown on; the argument is the
 * number of seconds. */
#include <cstdlib>
#include <ctime>
#include <stdexcept>
#include <string>
#include <vector>

static volatile unsigned long sink;

struct guard {
	std::string text;
	explicit guard(int n) : text(40, static_cast<char>('a' + n % 26)) {}
	~guard() { sink = sink + text.size(); }
};

static void descend(int n)
{
	guard g(n);
	std::vector<int> v(static_cast<size_t>(n + 1), n);

	if (!n)
		throw std::runtime_error("bottom");
	try {
		descend(n - 1);
	} catch (const std::exception &e) {
		sink = sink + static_cast<unsigned long>(e.what()[0]) + v.size();
		if (n % 3 == 0)
			throw std::logic_error(std::string("again ") + e.what());
		throw;
	}
}

int main(int argc, char **argv)
{
	time_t end = time(nullptr) + (argc > 1 ? atoi(argv[1]) : 1);

	while (time(nullptr) < end)
		for (int i = 0; i < 50; i++)
			try {
				descend(12);
			} catch (const std::exception &e) {
				sink = sink + 1;
			}
	return 0;
}
