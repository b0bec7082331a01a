/* real.cc - much of the C++ library, so that its templates are inlined here many levels deep:
 * containers, algorithms, regular expressions, streams, threads, lambdas, local classes, operators. */
#include <algorithm>
#include <atomic>
#include <deque>
#include <filesystem>
#include <functional>
#include <future>
#include <iomanip>
#include <iostream>
#include <list>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <variant>
#include <vector>

namespace shop {

enum class kind { book, tool, food };

struct item {
	std::string name;
	kind what;
	double price;

	bool operator<(const item &other) const { return std::tie(price, name) < std::tie(other.price, other.name); }
	explicit operator bool() const { return price > 0; }
};

namespace {

template <typename T, typename F>
std::vector<T> keep(const std::vector<T> &from, F &&wanted)
{
	std::vector<T> out;

	std::copy_if(from.begin(), from.end(), std::back_inserter(out), std::forward<F>(wanted));
	return out;
}

struct visitor {
	std::ostringstream out;

	void operator()(int v) { out << std::setw(8) << v; }
	void operator()(double v) { out << std::fixed << v; }
	void operator()(const std::string &v) { out << std::quoted(v); }
};

} // namespace

class store {
public:
	void add(item i)
	{
		by_name_[i.name].push_back(i);
		sorted_.insert(std::move(i));
	}

	std::optional<item> cheapest(kind k) const
	{
		struct same {
			kind k;
			bool operator()(const item &i) const { return i.what == k; }
		};
		auto at = std::find_if(sorted_.begin(), sorted_.end(), same{ k });

		if (at == sorted_.end())
			return std::nullopt;
		return *at;
	}

	double total() const
	{
		return std::accumulate(sorted_.begin(), sorted_.end(), 0.0,
				       [](double sum, const item &i) { return sum + i.price; });
	}

	std::vector<item> matching(const std::string &pattern) const
	{
		std::regex re(pattern, std::regex::ECMAScript | std::regex::icase);
		std::vector<item> all(sorted_.begin(), sorted_.end());

		return keep(all, [&re](const item &i) { return std::regex_search(i.name, re); });
	}

private:
	std::unordered_map<std::string, std::vector<item>> by_name_;
	std::multiset<item> sorted_;
};

} // namespace shop

template <int N>
static unsigned long fold(unsigned long x)
{
	if constexpr (N > 0)
		return fold<N - 1>(x * 6364136223846793005UL + N) ^ x >> 7;
	return x;
}

static double simulate(unsigned seed)
{
	std::mt19937_64 rng(seed);
	std::normal_distribution<double> normal(0, 1);
	std::deque<double> window;
	std::map<int, std::list<double>> buckets;

	for (int i = 0; i < 1000; i++) {
		window.push_back(normal(rng));
		if (window.size() > 50)
			window.pop_front();
		buckets[static_cast<int>(window.back() * 4)].push_back(window.front());
	}
	for (auto &[key, values] : buckets)
		values.sort([](double a, double b) { return a > b; });
	return std::accumulate(window.begin(), window.end(), 0.0);
}

int main(int argc, char **argv)
{
	shop::store s;
	std::vector<std::future<double>> jobs;
	std::vector<std::variant<int, double, std::string>> mixed{ argc, 1.5, std::string(argv[0]) };
	shop::visitor v;
	std::atomic<unsigned long> sum{ 0 };
	auto shared = std::make_shared<std::function<void(int)>>();

	for (int i = 0; i < 100; i++)
		s.add({ "item " + std::to_string(i), static_cast<shop::kind>(i % 3), i * 0.25 });
	for (unsigned i = 0; i < 4; i++)
		jobs.push_back(std::async(std::launch::async, simulate, i));
	for (auto &x : mixed)
		std::visit(v, x);
	*shared = [&sum, shared](int depth) {
		sum += fold<12>(static_cast<unsigned long>(depth));
		if (depth)
			(*shared)(depth - 1);
	};
	(*shared)(30);
	for (auto &j : jobs)
		std::cout << j.get() << '\n';
	for (const auto &i : s.matching("ITEM [1-3]+$"))
		std::cout << i.name << ' ' << i.price << '\n';
	if (auto c = s.cheapest(shop::kind::tool); c && *c)
		std::cout << c->name << ' ' << s.total() << v.out.str() << sum << '\n';
	std::cout << std::filesystem::path(argv[0]).filename() << '\n';
	*shared = nullptr;
	return 0;
}
