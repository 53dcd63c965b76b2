package httpproto

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
)

// badPorts are known for protocols other than HTTP: what a link makes us send
// there may be taken for commands. They are those that browsers refuse (WHATWG
// Fetch, section 2.9, "bad port") and, at the end, those of file shares, remote
// desktops, databases and brokers, which browsers allow pages to contact for
// good reasons of their own. Each part is in ascending order.
var badPorts = [...]uint16{
	0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95,
	101, 102, 103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179,
	389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587,
	601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061,
	6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,

	445,         // SMB
	873,         // rsync
	1433,        // SQL Server
	1521,        // Oracle
	1883,        // MQTT
	2181,        // ZooKeeper
	3306, 33060, // MySQL
	3389,  // Remote Desktop
	5432,  // PostgreSQL
	5672,  // AMQP
	5900,  // VNC
	6379,  // Redis
	8009,  // AJP
	9042,  // Cassandra
	9092,  // Kafka
	11211, // memcached
	27017, // MongoDB
}

// refusesPort returns why the port of a URL is refused; nil if it is not.
func (c *Client) refusesPort(u *url.URL) error {
	if u.Port() == "" {
		return nil
	}
	n, _ := strconv.ParseUint(u.Port(), 10, 16) // parseURL has checked it
	if p := uint16(n); slices.Contains(badPorts[:], p) && !slices.Contains(c.o.AllowPorts, p) {
		return fmt.Errorf("url: port %d is that of another protocol", p)
	}
	return nil
}
